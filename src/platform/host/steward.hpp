// Watches the streams of this process: starts the worker of a stream whose work nobody attends to. One thread for the
// process, asleep while all streams are idle.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace pkcomm::host {

class Stream;

class Steward {
 public:
  static Steward& instance();

  void add(Stream* stream);
  void remove(Stream* stream);
  /// Work was enqueued somewhere. A load where the steward is awake.
  void notice() {
    if (asleep_.load(std::memory_order_relaxed)) wake();
  }
  /// A driver is about to sleep: other streams' work should not wait for the next round.
  void attend();

 private:
  void wake();
  void run();
  /// Whether any stream has work; `at_once`: also start workers for what came in since the last round.
  bool look(bool at_once);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Stream*> streams_;
  std::atomic<bool> asleep_{false};
  bool hurry_ = false;
};

}  // namespace pkcomm::host
