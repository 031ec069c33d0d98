// One operation in flight a communicator: work of a rank that goes to another stream than its last work first waits for
// that one, by an event. What the host cannot order it leaves to the user and the device finds out: replays of a graph, and
// captured work beside work that is not. Of the streams themselves nothing is kept but their ids: the caller may destroy
// one at any time.
#pragma once

#include "platform/cuda/driver.hpp"

namespace pkcomm::cuda {

class StreamOrder {
 public:
  /// The events are made, and ended, with the rank's context current.
  Status create(const Driver& driver);
  void destroy();

  /// What is to be known of a stream while it is there.
  struct Place {
    CUstream stream;
    unsigned long long id;
    unsigned long long capture;  // of the graph that is being captured; 0: none
  };
  /// Before work goes to `stream`, and right behind it.
  Result<Place> before(CUstream stream);
  Status after(const Place& place);
  /// `to` goes on behind all that `from` has been given.
  Status join(CUstream from, CUstream to);
  /// Until the work that went to streams directly, not into a graph, has ended.
  Status drain();

 private:
  /// Where work went last, and an event behind it.
  struct Trail {
    CUevent event = nullptr;
    unsigned long long stream = 0;
    unsigned long long capture = 0;  // of the graph that was being captured
    bool used = false;
  };
  Result<Place> place_of(CUstream stream) const;
  Trail& trail_of(const Place& place) { return place.capture == 0 ? direct_ : captured_; }

  const Driver* driver_ = nullptr;
  Trail direct_, captured_;
  CUevent fork_ = nullptr;
};

}  // namespace pkcomm::cuda
