// A thread's group: calls between pkcommGroupStart and the outermost pkcommGroupEnd are collected here and then started
// together, or dropped together where one of them was wrong.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend.hpp"

namespace pkcomm {

/// Of the results of ranks that started together the first that is a failure of its own: the others were aborted because of
/// it or waited in vain. Success where there is no failure.
Status cause_of(std::span<const Status> results);

class Group {
 public:
  /// The calling thread's group if one is open.
  static Group* open();
  static void start();
  static Status end();

  void add(Launch launch) { launches_.push_back(std::move(launch)); }
  /// Starts of communicators run side by side at the end, each on a thread: they wait for each other.
  void add(std::function<Status()> start) { starts_.push_back(std::move(start)); }
  void add_failure(const Status& status) {
    if (failure_.ok()) failure_ = status;
  }

 private:
  Status finish();
  Status merge_transfers();

  int depth_ = 0;
  std::vector<Launch> launches_;
  std::vector<std::function<Status()>> starts_;
  Status failure_;
};

}  // namespace pkcomm
