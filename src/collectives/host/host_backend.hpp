// The host's backend: each launch becomes a task of a host stream, run by the executor. A queued
// task keeps its backend, so that an abort need not wait for it.
#pragma once

#include <memory>

#include "collectives/backend.hpp"
#include "collectives/host/executor.hpp"
#include "platform/host/stream.hpp"

namespace pkcomm::host {

class HostBackend final : public Backend, public std::enable_shared_from_this<HostBackend> {
 public:
  explicit HostBackend(BackendOptions options);

  int rank() const override { return executor_.waiter().view().rank; }
  Status check(pkcommStream_t stream) override;
  Status launch(Launch launch) override;
  Status launch_group(std::vector<Launch> group) override;
  void finish() override;
  Status complete(pkcommDeviceView_t&) const override {
    return Status(pkcommUnsupported, "the host platform has no device and no kernels");
  }
  void rank_died(int rank) override;
  void abort() override;
  void leave() override;
  Status failure() const override { return executor_.waiter().look(); }
  Status look() override { return failure(); }

 private:
  Task task_of(Launch launch);
  /// Puts `task` on `stream` behind this rank's last task.
  void submit(const std::shared_ptr<Stream>& stream, Task task);
  void follow(const std::shared_ptr<Stream>& stream);

  const std::shared_ptr<void> keeps_;
  const int device_;
  mutable Executor executor_;
  pkcommStream_t last_handle_ = nullptr;
  std::shared_ptr<Stream> last_;  // of the last task; null before the first
  std::uint64_t last_ticket_ = 0;
};

}  // namespace pkcomm::host
