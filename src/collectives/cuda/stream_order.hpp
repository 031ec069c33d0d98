// One operation in flight a communicator: work of a rank that goes to another stream than its last work first waits for
// that one, by an event. What the host cannot order it leaves to the user and the device finds out: replays of a graph, and
// captured work beside work that is not.
#pragma once

#include "platform/cuda/driver.hpp"

namespace pkcomm::cuda {

class StreamOrder {
 public:
  /// The events are made and ended with the rank's context current.
  Status create(const Driver& driver);
  void destroy();

  /// Before work goes to `stream`.
  Status before(CUstream stream);
  /// `to` goes on behind all that `from` has been given.
  Status join(CUstream from, CUstream to);
  /// Until the work that went to streams directly, not into a graph, has ended.
  Status drain();

 private:
  /// Where the last work went; `capture` numbers the graph that is being captured, 0: none is.
  struct Place {
    CUstream stream = nullptr;
    unsigned long long capture = 0;
    bool used = false;
  };

  const Driver* driver_ = nullptr;
  CUevent event_ = nullptr;
  Place direct_, captured_;
};

}  // namespace pkcomm::cuda
