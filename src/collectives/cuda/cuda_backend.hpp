// The backend of one rank on a GPU: each launch becomes kernels on the caller's stream, captured where that is being
// captured. All that they need is made by create(). What goes wrong on the device comes back through the error record in
// host memory, which failure() turns into words.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/log.hpp"
#include "collectives/backend.hpp"
#include "collectives/cuda/stream_order.hpp"
#include "platform/cuda/device.hpp"
#include "platform/cuda/device_link.hpp"
#include "protocol/reports.hpp"

namespace pkcomm::cuda {

class CudaBackend final : public Backend {
 public:
  static Result<std::shared_ptr<Backend>> create(BackendOptions options);
  ~CudaBackend() override;
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  int rank() const override { return options_.view.rank; }
  Status check(pkcommStream_t) override { return {}; }  // the driver tells, when something is launched
  Status launch(Launch launch) override;
  Status launch_group(std::vector<Launch> group) override;
  void finish() override;
  Status complete(pkcommDeviceView_t& view) const override;
  void rank_died(int rank) override;
  void abort() override;
  void leave() override;
  Status failure() const override;
  Status look() override;

 private:
  /// Pinned memory that the rank's kernels see.
  struct HostWords {
    ErrorRecord error;
    alignas(64) std::uint64_t verdict;  // {result: 32, rank + 1: 32}: the host ends all waits; 0: it does not
  };

  CudaBackend(BackendOptions options, const Driver& driver, Device& device);
  Status prepare();
  /// With the context current.
  Status put(const Launch& launch, CUstream stream);
  Status run(const CollectiveWork& work, CUstream stream);
  Status run(const TransferWork& work, CUstream stream);
  Status run(const PutWork& work, CUstream stream);
  Status run(const SignalWork& work, CUstream stream);
  Status run(const WaitSignalWork& work, CUstream stream);
  template <int kMost>
  Status run_batches(const TransferWork& work, int kernel, CUstream stream);
  /// `parameter`: what the kernel takes beside view and link.
  Status start(int kernel, int ctas, int threads, CUstream stream, const void* parameter);

  void rule(pkcommResult_t result, int rank);
  void look_for_poison() const;
  void remember(Status status) const;
  /// What a record says, in the words of the rank that wrote it.
  Status words_of(const ErrorRecord& error, int rank) const;
  Status words_of_poison(pkcommResult_t result, int peer) const;
  Status words_of_verdict(std::uint64_t verdict) const;
  /// Of device memory, this rank's or a peer's.
  template <class T>
  T copy_of(const void* address) const {
    T copy{};
    log_if_failed(device_.read(&copy, static_cast<const std::byte*>(address), sizeof copy));
    return copy;
  }

  const BackendOptions options_;
  const Driver& driver_;
  Device& device_;
  const Reports reports_;
  const Modules* modules_ = nullptr;
  HostWords* words_ = nullptr;
  DeviceLink link_;
  StreamOrder order_;
  CUstream side_ = nullptr;                // for groups in which another rank has the caller's stream
  mutable std::atomic<bool> lent_{false};  // to kernels of the caller's
  mutable std::atomic<bool> failed_{false};
  mutable std::atomic<std::int64_t> looked_ms_{0};
  mutable std::mutex mutex_;
  mutable Status first_failure_;
};

}  // namespace pkcomm::cuda
