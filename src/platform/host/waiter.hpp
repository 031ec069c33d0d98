// Every wait of one rank's running work, and how each of them ends: the word comes, the communicator is aborted, a peer
// gives up, leaves, dies or calls something else, or the deadline passes. Whoever gives up says why, poisons every peer
// and publishes nothing more. One thread at a time, but for abort() and report().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "platform/host/atomic_word.hpp"
#include "protocol/layout.hpp"
#include "protocol/reports.hpp"

namespace pkcomm::host {

struct WaiterOptions {
  std::int64_t timeout_ms = 0;     // 0: no deadline
  std::int64_t spin_us = 0;        // before yielding and sleeping
  std::vector<std::int64_t> pids;  // of each rank, for messages
  Reports::Describe describe = nullptr;
};

class Waiter {
 public:
  Waiter(const View& view, WaiterOptions options)
      : view_(view), options_(std::move(options)), reports_(view.rank, options_.pids, options_.describe) {}

  const View& view() const noexcept { return view_; }
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  /// True when `ready()` is; false when the wait was given up. `peers`: the ranks it waits for, each of which has to do
  /// something before it is over.
  template <class Ready>
  bool wait(const Ready& ready, std::span<const int> peers, const char* phase) {
    if (failed()) return false;
    for (int i = 0; i < kFirstLooks; ++i) {
      if (ready()) return true;
    }
    return wait_slowly([](const void* self) { return (*static_cast<const Ready*>(self))(); }, &ready, peers,
                       phase);
  }

  /// Begins the operation described by `call`. False when the communicator has failed already.
  bool begin(const CallRecord& call);
  /// Whether nothing went wrong meanwhile: a rank that slept through its peers' giving up has no valid result.
  bool end();

  /// False, and everybody is told, where `seen`, a word of `peer`'s, is not the wanted one.
  bool demand(std::uint64_t seen, std::uint64_t wanted, int peer);
  void fail(pkcommResult_t code, std::string text);

  /// From any thread: running and future waits end.
  void abort();
  /// The first failure; success if none. From any thread.
  Status report() const;
  /// The same, counting what peers have told since this rank's last wait. From any thread.
  Status look();

 private:
  static constexpr int kFirstLooks = 256;  // some microseconds; no clock is read before

  bool wait_slowly(bool (*ready)(const void*), const void* self, std::span<const int> peers,
                   const char* phase);
  bool in_trouble(bool (*ready)(const void*), const void* self, std::span<const int> peers);
  bool calls_differ(int peer);
  void fail_timeout(std::span<const int> peers, const char* phase, std::int64_t waited_ms);
  CallRecord call_of(int rank, std::uint64_t index) const;

  const View view_;
  const WaiterOptions options_;
  const Reports reports_;
  CallRecord call_{};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  Status first_failure_;
};

}  // namespace pkcomm::host
