// Launching, and the end of what was launched.
#include "collectives/cuda/cuda_backend.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <set>

#include "base/log.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/transfer_batch.hpp"
#include "collectives/describe.hpp"
#include "collectives/segments.hpp"
#include "platform/cuda/cuda_platform.hpp"

namespace pkcomm::cuda {
namespace {

CUstream native(pkcommStream_t stream) { return reinterpret_cast<CUstream>(stream); }

// CTAs of work that has no plan: as few as a collective has by default (comm/settings.cpp).
constexpr int kMostCtas = 16;
constexpr std::uint64_t kPutBytesPerCta = 16 << 10;

}  // namespace

CudaBackend::CudaBackend(BackendOptions options, const Driver& driver, Device& device)
    : options_(std::move(options)),
      driver_(driver),
      device_(device),
      reports_(options_.view.rank, options_.pids, &describe_call) {}

Result<std::shared_ptr<Backend>> CudaBackend::create(BackendOptions options) {
  PK_ASSIGN(CudaPlatform* const platform, CudaPlatform::instance());
  PK_ASSIGN(Device* const device, platform->opened(options.device));
  std::shared_ptr<CudaBackend> backend(new CudaBackend(std::move(options), platform->driver(), *device));
  PK_TRY(backend->prepare());
  return std::shared_ptr<Backend>(std::move(backend));
}

Status CudaBackend::prepare() {
  PK_ASSIGN(modules_, device_.modules(kernel_images(), kernels()));
  PK_ASSIGN(const auto scope, device_.enter());
  PK_TRY(order_.create(driver_));
  PK_TRY(cuda::check(driver_.cuStreamCreateWithPriority(&side_, CU_STREAM_NON_BLOCKING, 0),
                     "cuStreamCreateWithPriority"));
  void* memory = nullptr;
  PK_TRY(cuda::check(driver_.cuMemHostAlloc(&memory, sizeof(HostWords),
                                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                     "cuMemHostAlloc", {{"bytes", sizeof(HostWords)}}));
  // Unified addressing: the device sees pinned memory at the host's address.
  words_ = new (memory) HostWords{};
  static_assert(sizeof(DeviceWords) <= kOwnBytes);
  link_.words = reinterpret_cast<DeviceWords*>(options_.view.at(rank(), options_.view.layout.own));
  link_.verdict = &words_->verdict;
  link_.error = &words_->error;
  link_.deadline_ns = static_cast<std::uint64_t>(options_.timeout_ms) * 1000000;
  return {};
}

CudaBackend::~CudaBackend() {
  const auto relaxed = RelaxedCapture::enter(driver_);
  log_if_failed(relaxed.status());
  const auto current = CurrentContext::enter(driver_, device_.context());
  // Out of a context that cannot be entered nothing can be given back.
  log_if_failed(current.status());
  if (!current.ok()) return;
  order_.destroy();
  if (side_ != nullptr) log_if_failed(cuda::check(driver_.cuStreamDestroy(side_), "cuStreamDestroy"));
  if (words_ != nullptr) log_if_failed(cuda::check(driver_.cuMemFreeHost(words_), "cuMemFreeHost"));
}

Status CudaBackend::launch(Launch launch) {
  PK_ASSIGN(const auto current, CurrentContext::enter(driver_, device_.context()));
  return put(launch, native(launch.stream));
}

Status CudaBackend::launch_group(std::vector<Launch> group) {
  // A stream of one device that several ranks have named carries the work of the first; that of the others goes beside it,
  // from where the stream is now, and the stream goes on behind all of it.
  std::map<std::pair<int, CUstream>, CudaBackend*> owners;
  std::set<std::pair<CudaBackend*, CUstream>> beside;
  for (const Launch& launch : group) {
    auto* const backend = static_cast<CudaBackend*>(launch.backend);
    const CUstream stream = native(launch.stream);
    const auto owner = owners.emplace(std::pair(backend->options_.device, stream), backend).first->second;
    if (owner == backend || !beside.emplace(backend, stream).second) continue;
    PK_ASSIGN(const auto current, CurrentContext::enter(driver_, backend->device_.context()));
    PK_TRY(backend->order_.join(stream, backend->side_));
  }
  const auto put_all = [&]() -> Status {
    for (const Launch& launch : group) {
      auto* const backend = static_cast<CudaBackend*>(launch.backend);
      const CUstream stream = native(launch.stream);
      PK_ASSIGN(const auto current, CurrentContext::enter(driver_, backend->device_.context()));
      PK_TRY(backend->put(launch, beside.contains({backend, stream}) ? backend->side_ : stream));
    }
    return {};
  };
  const auto join = [&](CudaBackend& backend, CUstream stream) -> Status {
    PK_ASSIGN(const auto current, CurrentContext::enter(driver_, backend.device_.context()));
    return backend.order_.join(backend.side_, stream);
  };
  Status status = put_all();
  // Also where a launch has failed: who waits for the stream waits for all that went beside it.
  for (const auto& [backend, stream] : beside) {
    Status joined = join(*backend, stream);
    if (status.ok()) status = std::move(joined);
  }
  return status;
}

Status CudaBackend::put(const Launch& launch, CUstream stream) {
  PK_ASSIGN(const StreamOrder::Place place, order_.before(stream));
  Status status = std::visit([&](const auto& work) { return run(work, stream); }, launch.work);
  // Also behind a part of the work, where the rest has failed: the end of the communicator waits for it.
  Status recorded = order_.after(place);
  return status.ok() ? recorded : status;
}

Status CudaBackend::run(const CollectiveWork& work, CUstream stream) {
  const View& view = options_.view;
  Status status;
  each_segment(view, work.op, work.algorithm, work.ctas, [&](const Operation& op) {
    auto kernel = kernel_for(op, work.algorithm, view.nranks);
    if (!kernel.ok()) {
      status = std::move(kernel).status();
    } else {
      const int threads = threads_for(op.collective, work.algorithm, op.block, work.ctas, view.nranks);
      status = start(kernel.value(), work.ctas, threads, stream, &op);
    }
    return status.ok();
  });
  return status;
}

Status CudaBackend::run(const TransferWork& work, CUstream stream) {
  const OtherKernels& kernels = other_kernels();
  if (work.transfers.size() <= kFewTransfers) {
    return run_batches<kFewTransfers>(work, kernels.pairwise_few, stream);
  }
  return run_batches<kManyTransfers>(work, kernels.pairwise_many, stream);
}

template <int kMost>
Status CudaBackend::run_batches(const TransferWork& work, int kernel, CUstream stream) {
  PK_ASSIGN(const auto batches,
            transfer_batches<kMost>(work.op, work.transfers, rank(), options_.view.nranks));
  for (const TransferBatch<kMost>& batch : batches) {
    const int ctas = std::clamp<int>(batch.lanes, 1, kMostCtas);
    PK_TRY(start(kernel, ctas, kMostThreads, stream, &batch));
  }
  return {};
}

Status CudaBackend::run(const PutWork& work, CUstream stream) {
  const std::uint64_t ctas = work.bytes / kPutBytesPerCta + 1;
  return start(other_kernels().put, static_cast<int>(std::min<std::uint64_t>(ctas, kMostCtas)), kMostThreads,
               stream, &work);
}

Status CudaBackend::run(const SignalWork& work, CUstream stream) {
  return start(other_kernels().signal, 1, kFewestThreads, stream, &work);
}

Status CudaBackend::run(const WaitSignalWork& work, CUstream stream) {
  return start(other_kernels().wait_signal, 1, kFewestThreads, stream, &work);
}

Status CudaBackend::start(int kernel, int ctas, int threads, CUstream stream, const void* parameter) {
  std::array<void*, 3> parameters{const_cast<View*>(&options_.view), &link_, const_cast<void*>(parameter)};
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig shape{};
  shape.gridDimX = static_cast<unsigned>(ctas);
  shape.gridDimY = shape.gridDimZ = shape.blockDimY = shape.blockDimZ = 1;
  shape.blockDimX = static_cast<unsigned>(threads);
  shape.hStream = stream;
  shape.attrs = &early;
  shape.numAttrs = 1;
  const auto index = static_cast<std::size_t>(kernel);
  return cuda::check(
      driver_.cuLaunchKernelEx(&shape, modules_->functions()[index], parameters.data(), nullptr),
      "cuLaunchKernelEx", {{"kernel", kernels()[index].name}, {"ctas", ctas}, {"threads", threads}});
}

void CudaBackend::finish() {
  const auto scope = device_.enter();
  Status ended = scope.ok() ? order_.drain() : scope.status();
  if (!ended.ok()) remember(std::move(ended));
}

Status CudaBackend::complete(pkcommDeviceView_t& view) const {
  view.verdict = link_.verdict;
  view.deadline_ns = link_.deadline_ns;
  lent_.store(true, std::memory_order_relaxed);
  return {};
}

void CudaBackend::rule(pkcommResult_t result, int rank) {
  // The first ruling stays. Relaxed: nothing is published with it.
  std::uint64_t none = 0;
  __atomic_compare_exchange_n(&words_->verdict, &none,
                              static_cast<std::uint64_t>(result) << 32 | static_cast<std::uint32_t>(rank + 1),
                              false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void CudaBackend::rank_died(int rank) { rule(pkcommRemoteError, rank); }

void CudaBackend::abort() {
  rule(pkcommAborted, rank());
  // A running kernel tells the peers as well; here there may be none. Who has been told of something else keeps that.
  const std::uint64_t poison = __atomic_load_n(&words_->verdict, __ATOMIC_RELAXED);
  for (int peer = 0; peer < options_.view.nranks; ++peer) {
    std::uint64_t* const word = &options_.view.control(peer)->poison;
    if (peer == rank() || copy_of<std::uint64_t>(word) != 0) continue;
    log_if_failed(device_.write(reinterpret_cast<std::byte*>(word), &poison, sizeof poison));
  }
}

void CudaBackend::leave() {
  finish();
  if (lent_.load(std::memory_order_relaxed)) {
    // Kernels of the caller's may use the memory that goes away; nothing tells where they run.
    const auto scope = device_.enter();
    if (scope.ok()) log_if_failed(cuda::check(driver_.cuCtxSynchronize(), "cuCtxSynchronize"));
  }
  // Behind all that this rank has published: who sees the word has seen everything else.
  const std::uint64_t left = 1;
  ControlBlock* const own = options_.view.control(rank());
  log_if_failed(device_.write(reinterpret_cast<std::byte*>(&own->left), &left, sizeof left));
}

}  // namespace pkcomm::cuda
