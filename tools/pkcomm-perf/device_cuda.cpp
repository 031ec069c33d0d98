// A GPU, by the CUDA runtime alone. Times are those of events on the stream, behind a gate (gate.cuh) that
// opens when everything has been enqueued; data travel through a pinned buffer of the host. Compiled where
// there is nvcc.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>

#include "clock.hpp"
#include "device.hpp"
#include "gate.cuh"
#include "sizes.hpp"

namespace pkcomm::perf {

namespace {

constexpr std::size_t kStagingBytes = std::size_t{8} << 20;  // a multiple of 8
constexpr std::size_t kChillBytes = std::size_t{256} << 20;  // more than any second-level cache
// Behind a closed gate the launch queue takes about a thousand entries, and a small operation may be a dozen.
constexpr int kMostOperations = 32;

Outcome checked(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return Error{std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")"};
}

// Owns one event with timing. Made before a gate closes, recorded behind it.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
  }
  Outcome create() { return checked(cudaEventCreate(&event_), "cudaEventCreate"); }
  Outcome record(cudaStream_t stream) { return checked(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  /// Seconds from `earlier` to this one; both have happened.
  Result<double> since(const Event& earlier) const {
    float milliseconds = 0;
    PERF_TRY(checked(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "cudaEventElapsedTime"));
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaGraph final : public Graph {
 public:
  CudaGraph(cudaGraphExec_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {}
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override { (void)cudaGraphExecDestroy(graph_); }
  Outcome launch() override { return checked(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t graph_;
  cudaStream_t stream_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, bool null_stream) : index_(index), null_stream_(null_stream) {}
  ~CudaDevice() override {
    if (chill_ != nullptr) (void)cudaFree(chill_);
    if (words_ != nullptr) (void)cudaFreeHost(words_);
    if (staging_ != nullptr) (void)cudaFreeHost(staging_);
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }

  Outcome start() {
    PERF_TRY(checked(cudaSetDevice(index_), "cudaSetDevice"));
    cudaDeviceProp properties{};
    PERF_TRY(checked(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties"));
    name_ = properties.name;
    char bus[32] = {};
    PERF_TRY(checked(cudaDeviceGetPCIBusId(bus, sizeof bus, index_), "cudaDeviceGetPCIBusId"));
    bus_id_ = bus;
    if (!null_stream_) {
      PERF_TRY(checked(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
    }
    void* memory = nullptr;
    PERF_TRY(checked(cudaHostAlloc(&memory, kStagingBytes, cudaHostAllocDefault), "cudaHostAlloc"));
    staging_ = static_cast<std::byte*>(memory);
    PERF_TRY(checked(cudaHostAlloc(&memory, sizeof(GateWords), cudaHostAllocMapped), "cudaHostAlloc"));
    words_ = new (memory) GateWords;
    PERF_TRY(checked(cudaHostGetDevicePointer(&memory, words_, 0), "cudaHostGetDevicePointer"));
    words_on_device_ = static_cast<GateWords*>(memory);
    for (Event* const event : {&start_, &end_}) PERF_TRY(event->create());
    PERF_TRY(checked(load_gate(), "cudaFuncGetAttributes"));
    return use_once();
  }

  std::string_view platform() const override { return "cuda"; }
  int index() const override { return index_; }
  std::string name() const override { return name_; }
  std::string bus_id() const override { return bus_id_; }

  pkcommStream_t stream() const override { return stream_; }
  Outcome synchronize() override { return checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  Result<void*> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const Outcome outcome = checked(cudaMalloc(&memory, bytes), "cudaMalloc");
    if (!outcome.ok()) return Error{in_words(bytes) + " of device memory: " + outcome.error().text};
    return memory;
  }
  void release(void* memory, std::size_t) override { (void)cudaFree(memory); }

  Outcome fill(std::byte* at, int byte, std::size_t bytes) override {
    PERF_TRY(checked(cudaMemsetAsync(at, byte, bytes, stream_), "cudaMemsetAsync"));
    return synchronize();
  }
  Outcome write(std::byte* at, std::size_t bytes, const Produce& produce) override {
    for (std::size_t done = 0; done < bytes; done += kStagingBytes) {
      const std::size_t part = std::min(bytes - done, kStagingBytes);
      produce(staging_, done, part);
      PERF_TRY(copy(at + done, staging_, part));
    }
    return {};
  }
  Outcome read(const std::byte* at, std::size_t bytes, const Inspect& inspect) override {
    for (std::size_t done = 0; done < bytes; done += kStagingBytes) {
      const std::size_t part = std::min(bytes - done, kStagingBytes);
      PERF_TRY(copy(staging_, at + done, part));
      inspect(staging_, done, part);
    }
    return {};
  }

  // A kernel is loaded when it is first launched, which must not happen behind a closed gate.
  int least_warmup() const override { return 1; }
  int most_operations() const override { return kMostOperations; }
  void run_ahead() override { open_gate(); }

  Result<Elapsed> time(const Step& align, const Step& work) override {
    PERF_TRY(close_gate());
    Elapsed elapsed;
    const Outcome enqueued = [&]() -> Outcome {
      PERF_TRY(align());
      PERF_TRY(start_.record(stream_));
      const std::int64_t start = steady_ns();
      PERF_TRY(work());
      elapsed.host_seconds = static_cast<double>(steady_ns() - start) * 1e-9;
      return end_.record(stream_);
    }();
    open_gate();
    PERF_TRY(enqueued);
    PERF_TRY(pass_gate());
    const Result<double> seconds = end_.since(start_);
    PERF_TRY(seconds);
    elapsed.seconds = seconds.value();
    return elapsed;
  }

  Outcome prepare_sampling(int most) override {
    while (stamps_.size() <= static_cast<std::size_t>(most)) PERF_TRY(stamps_.emplace_back().create());
    return {};
  }

  // In batches that fit the launch queue. Each begins behind `align`, which is what makes ends comparable:
  // within the microsecond or two in which the ranks leave it.
  Result<std::vector<Iteration>> sample(int iterations, int batch, const Step& align, const Step& work,
                                        const Step& wait) override {
    std::vector<Iteration> series;
    const int most = wait ? iterations : batch;
    while (static_cast<int>(series.size()) < iterations) {
      const auto now = static_cast<std::size_t>(std::min(most, iterations - static_cast<int>(series.size())));
      // Who waits after each iteration needs an open stream, and pays for the launches.
      if (!wait) PERF_TRY(close_gate());
      const Outcome enqueued = [&]() -> Outcome {
        PERF_TRY(align());
        PERF_TRY(stamps_[0].record(stream_));
        for (std::size_t i = 1; i <= now; ++i) {
          PERF_TRY(work());
          PERF_TRY(stamps_[i].record(stream_));
          if (wait) PERF_TRY(wait());
        }
        return {};
      }();
      open_gate();
      PERF_TRY(enqueued);
      PERF_TRY(pass_gate());
      for (std::size_t i = 1; i <= now; ++i) {
        const Result<double> duration = stamps_[i].since(stamps_[i - 1]);
        PERF_TRY(duration);
        const Result<double> end = stamps_[i].since(stamps_[0]);
        PERF_TRY(end);
        series.push_back({static_cast<std::int64_t>(duration.value() * 1e9),
                          static_cast<std::int64_t>(end.value() * 1e9)});
      }
    }
    return series;
  }

  bool has_graphs() const override { return true; }

  Result<std::unique_ptr<Graph>> capture(const Step& work) override {
    // Thread-local: ranks that are threads of this process go on allocating meanwhile.
    PERF_TRY(
        checked(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"));
    const Outcome enqueued = work();
    cudaGraph_t graph = nullptr;
    const Outcome ended = checked(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    PERF_TRY(enqueued);
    PERF_TRY(ended);
    cudaGraphExec_t executable = nullptr;
    const Outcome made = checked(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    (void)cudaGraphDestroy(graph);
    PERF_TRY(made);
    auto owner = std::make_unique<CudaGraph>(executable, stream_);
    PERF_TRY(checked(cudaGraphUpload(executable, stream_), "cudaGraphUpload"));
    PERF_TRY(synchronize());
    return std::unique_ptr<Graph>(std::move(owner));
  }

  Outcome chill() override {
    if (chill_ == nullptr) PERF_TRY(checked(cudaMalloc(&chill_, kChillBytes), "cudaMalloc"));
    return checked(cudaMemsetAsync(chill_, 0, kChillBytes, stream_), "cudaMemsetAsync");
  }

 private:
  struct GateWords {
    std::atomic<unsigned> opened{0};   // the greatest ticket that may pass
    std::atomic<unsigned> overdue{0};  // the last ticket whose gate gave up
  };
  static_assert(sizeof(std::atomic<unsigned>) == sizeof(unsigned));

  // The driver too loads its kernels at first use.
  Outcome use_once() {
    constexpr std::size_t kBytes = 4096;
    const Result<void*> memory = allocate(kBytes);
    PERF_TRY(memory);
    auto* const base = static_cast<std::byte*>(memory.value());
    const Outcome used = [&]() -> Outcome {
      PERF_TRY(fill(base, 0, kBytes));
      PERF_TRY(fill(base + 1, 0, 1));
      PERF_TRY(copy(staging_, base, kBytes));
      return copy(base, staging_, kBytes);
    }();
    release(base, kBytes);
    return used;
  }

  Outcome copy(void* to, const void* from, std::size_t bytes) {
    PERF_TRY(checked(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync"));
    return synchronize();
  }

  Outcome close_gate() {
    return checked(enqueue_gate(reinterpret_cast<const unsigned*>(&words_on_device_->opened),
                                reinterpret_cast<unsigned*>(&words_on_device_->overdue), ++ticket_, stream_),
                   "the launch of the gate");
  }
  void open_gate() { words_->opened.store(ticket_, std::memory_order_release); }

  // Waits for what lay behind the gate.
  Outcome pass_gate() {
    PERF_TRY(synchronize());
    if (words_->overdue.load(std::memory_order_relaxed) != ticket_) return {};
    return Error{
        "the launches did not come to an end while the stream was held back: too many operations in an "
        "iteration (-m), or something that makes each launch wait (CUDA_LAUNCH_BLOCKING, a profiler's "
        "replay)"};
  }

  int index_;
  bool null_stream_;
  std::string name_;
  std::string bus_id_;
  cudaStream_t stream_ = nullptr;  // stays NULL, the default stream, under -y 1
  std::byte* staging_ = nullptr;
  GateWords* words_ = nullptr;
  GateWords* words_on_device_ = nullptr;
  unsigned ticket_ = 0;
  Event start_;
  Event end_;
  std::deque<Event> stamps_;  // sample()'s; a deque, since events stay where they are
  void* chill_ = nullptr;
};

}  // namespace

int cuda_devices() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

Result<std::unique_ptr<Device>> make_cuda_device(int rank, bool null_stream) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaErrorInsufficientDriver) {
    return Error{"the CUDA platform: there is no driver, or one too old for CUDA " +
                 std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10)};
  }
  PERF_TRY(checked(error, "cudaGetDeviceCount"));
  auto device = std::make_unique<CudaDevice>(rank % devices, null_stream);
  PERF_TRY(device->start());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace pkcomm::perf
