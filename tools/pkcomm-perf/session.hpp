// One communicator under test, with its stream: what a rank holds while it measures. The destructor releases
// everything in the reverse order.
#pragma once

#include <string>
#include <utility>

#include "options.hpp"
#include "pkcomm/pkcomm.h"
#include "result.hpp"
#include "team.hpp"

namespace pkcomm::perf {

class Session {
 public:
  /// Collective over the team: rank 0 makes the id.
  static Result<Session> open(const Options& options, Team& team);
  Session(Session&& other) noexcept
      : comm_(std::exchange(other.comm_, nullptr)),
        stream_(std::exchange(other.stream_, nullptr)),
        properties_(other.properties_) {}
  Session& operator=(Session&&) = delete;
  ~Session();

  pkcommComm_t comm() const { return comm_; }
  pkcommStream_t stream() const { return stream_; }
  /// As they were when the session was opened.
  const pkcommCommProperties_t& properties() const { return properties_; }

  Outcome synchronize() const {
    return check(pkcommStreamSynchronize(stream_), "pkcommStreamSynchronize", comm_);
  }
  /// Brings the ranks together as tightly as the library can.
  Outcome align() const;

 private:
  Session() = default;

  pkcommComm_t comm_ = nullptr;
  pkcommStream_t stream_ = nullptr;  // NULL under -y 1: the default stream of the rank's device
  pkcommCommProperties_t properties_{};
};

}  // namespace pkcomm::perf
