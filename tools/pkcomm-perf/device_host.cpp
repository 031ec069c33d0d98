// The host platform: memory is mapped here, streams are the library's, and the clock is the wall's. Launching
// costs no more than a function call, so nothing holds the stream back while work is enqueued.
#include <sys/mman.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "clock.hpp"
#include "device.hpp"
#include "sizes.hpp"

namespace pkcomm::perf {

namespace {

double seconds_since(std::int64_t start_ns) { return static_cast<double>(steady_ns() - start_ns) * 1e-9; }

// Runs on the stream.
void stamp(void* slot) { *static_cast<std::int64_t*>(slot) = steady_ns(); }

class HostDevice final : public Device {
 public:
  explicit HostDevice(bool null_stream) : null_stream_(null_stream) {}
  ~HostDevice() override {
    if (stream_ != nullptr) (void)pkcommStreamDestroy(stream_);
  }

  std::string_view platform() const override { return "host"; }
  int index() const override { return PKCOMM_UNDEFINED; }
  std::string name() const override { return "host platform"; }
  std::string bus_id() const override { return "0000:00:00"; }

  Outcome start() {
    return null_stream_ ? Outcome{} : check(pkcommStreamCreate(&stream_), "pkcommStreamCreate");
  }
  pkcommStream_t stream() const override { return stream_; }
  Outcome synchronize() override {
    return check(pkcommStreamSynchronize(stream_), "pkcommStreamSynchronize");
  }

  // What malloc would do for large blocks, with an alignment that is known, and freed pages go back at once.
  Result<void*> allocate(std::size_t bytes) override {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Error{in_words(bytes) + " of memory: " + std::strerror(errno)};
    return memory;
  }
  void release(void* memory, std::size_t bytes) override { munmap(memory, bytes); }
  Outcome fill(std::byte* at, int byte, std::size_t bytes) override {
    std::memset(at, byte, bytes);
    return {};
  }
  Outcome write(std::byte* at, std::size_t bytes, const Produce& produce) override {
    produce(at, 0, bytes);
    return {};
  }
  Outcome read(const std::byte* at, std::size_t bytes, const Inspect& inspect) override {
    inspect(at, 0, bytes);
    return {};
  }

  int least_warmup() const override { return 0; }
  int most_operations() const override { return INT_MAX; }
  void run_ahead() override {}

  Result<Elapsed> time(const Step& align, const Step& work) override {
    PERF_TRY(align());
    PERF_TRY(synchronize());
    Elapsed elapsed;
    const std::int64_t start = steady_ns();
    PERF_TRY(work());
    elapsed.host_seconds = seconds_since(start);
    PERF_TRY(synchronize());
    elapsed.seconds = seconds_since(start);
    return elapsed;
  }

  Outcome prepare_sampling(int) override { return {}; }

  // A time stamp runs on the stream behind each iteration.
  Result<std::vector<Iteration>> sample(int iterations, int, const Step& align, const Step& work,
                                        const Step& wait) override {
    std::vector<std::int64_t> stamps(static_cast<std::size_t>(iterations) + 1, 0);
    const auto enqueue_stamp = [&](std::size_t i) {
      return check(pkcommStreamEnqueue(stream_, stamp, &stamps[i]), "pkcommStreamEnqueue");
    };
    PERF_TRY(align());
    PERF_TRY(synchronize());
    PERF_TRY(enqueue_stamp(0));
    for (std::size_t i = 1; i < stamps.size(); ++i) {
      PERF_TRY(work());
      PERF_TRY(enqueue_stamp(i));
      if (wait) PERF_TRY(wait());
    }
    PERF_TRY(synchronize());
    std::vector<Iteration> series;
    for (std::size_t i = 1; i < stamps.size(); ++i) series.push_back({stamps[i] - stamps[i - 1], stamps[i]});
    return series;
  }

  bool has_graphs() const override { return false; }
  Result<std::unique_ptr<Graph>> capture(const Step&) override {
    return Error{"the host platform has no graphs"};
  }
  Outcome chill() override { return Error{"the host platform has no way to empty the caches"}; }

 private:
  bool null_stream_;
  pkcommStream_t stream_ = nullptr;  // stays NULL, the default stream, under -y 1
};

}  // namespace

Result<std::unique_ptr<Device>> make_host_device(bool null_stream) {
  auto device = std::make_unique<HostDevice>(null_stream);
  PERF_TRY(device->start());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace pkcomm::perf
