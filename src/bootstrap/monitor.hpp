// Notices that a connection closed, by one thread for all communicators of the process. It looks at nothing but
// hang-ups, so whatever else happens on a connection does not wake it. The thread exists while something is watched.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.hpp"

namespace pkcomm::bootstrap {

/// The connections of one communicator under watch.
class Watch {
 public:
  struct Connection {
    int fd;       ///< stays open until stop()
    int process;  ///< what `lost` is told
  };
  /// Calls `lost` once for each connection that closes or is closed already. `lost` must not call stop().
  static Result<std::shared_ptr<Watch>> start(const std::vector<Connection>& connections,
                                              std::function<void(int process)> lost);
  /// After it `lost` neither runs nor will. Once; not needed where `start` failed.
  void stop();

 private:
  friend class Monitor;
  explicit Watch(std::function<void(int process)> lost) : lost_(std::move(lost)) {}
  void report(int process);

  std::mutex mutex_;  ///< held while `lost` runs
  bool stopped_ = false;
  std::function<void(int process)> lost_;
};

}  // namespace pkcomm::bootstrap
