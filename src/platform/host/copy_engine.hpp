// The host's copy engine: one background thread for the process copies what it is given, in order, while the caller goes
// on. A client (one rank's policy) drains its own copies before it publishes anything about them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace pkcomm::host {

/// The thread and its queue; made with the first copy, never ended (it holds nothing of the caller's between copies).
class CopyWorker {
 public:
  static CopyWorker& instance();
  void copy(std::byte* to, const std::byte* from, std::uint64_t bytes, std::uint64_t* pending);
  void drain(const std::uint64_t* pending);

 private:
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::uint64_t bytes;
    std::uint64_t* pending;  // of the client; counted down under mutex_
  };
  void start();
  void run();
  void copy_first(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable wanted_, done_;
  std::deque<Copy> copies_;
  bool threadless_ = false;  // no thread could be started: whoever drains copies
};

/// One client's view of the worker.
class CopyEngine {
 public:
  void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    if (bytes > 0) CopyWorker::instance().copy(to, from, bytes, &pending_);
  }
  void drain() { CopyWorker::instance().drain(&pending_); }

 private:
  std::uint64_t pending_ = 0;
};

}  // namespace pkcomm::host
