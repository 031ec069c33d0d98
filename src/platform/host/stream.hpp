// An in-order host stream. Whoever waits for it runs its work on the spot, so the fast path has no hand-off and no system
// call; its worker, started by the steward, takes over only work that nobody waits for. Modelled in
// tests/model/stream.pml.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.hpp"

namespace pkcomm::host {

/// A callable that returns a Status, kept in place: enqueueing allocates nothing.
class Task {
 public:
  static constexpr std::size_t kBytes = 320;

  Task() = default;
  template <class F>
  explicit Task(F function) {
    static_assert(sizeof(F) <= kBytes && std::is_nothrow_move_constructible_v<F>);
    new (storage_) F(std::move(function));
    run_ = [](void* self) -> Status { return (*static_cast<F*>(self))(); };
    move_ = [](void* from, void* to) {
      if (to != nullptr) new (to) F(std::move(*static_cast<F*>(from)));
      static_cast<F*>(from)->~F();
    };
  }
  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Task() { reset(); }

  Status run() { return run_(storage_); }

 private:
  void reset() {
    if (move_ != nullptr) move_(storage_, nullptr);
    move_ = nullptr;
  }
  void take(Task& other) {
    run_ = other.run_;
    move_ = std::exchange(other.move_, nullptr);
    if (move_ != nullptr) move_(other.storage_, storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kBytes];
  Status (*run_)(void*) = nullptr;
  void (*move_)(void*, void*) = nullptr;  // moves to the second, or destroys where that is null
};

class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Runs what is left, then ends the worker.
  ~Stream();

  /// Puts a task at the end; gives its ticket: how many tasks were put before and with it.
  std::uint64_t enqueue(Task task);
  std::uint64_t last_ticket() const { return enqueued_.load(std::memory_order_acquire); }
  bool done(std::uint64_t ticket) const { return completed_.load(std::memory_order_acquire) >= ticket; }
  /// Returns when the tasks up to `ticket` have run; runs them here if nobody else does.
  void wait(std::uint64_t ticket);
  /// The first failure of a task since the last call.
  Status take_failure();

  bool idle() const { return done(last_ticket()); }
  /// The same in order with enqueue(): what a thread stored before is seen by whoever enqueues after a `true`.
  bool idle_for_certain();
  bool driven() const { return driving_.load(std::memory_order_relaxed); }
  /// Has the worker run what is there.
  void start_worker();

  /// Counted by the steward while work lies unattended.
  int unattended_ticks = 0;

 private:
  bool drive(std::uint64_t ticket);
  void work();

  std::atomic<std::uint64_t> enqueued_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<bool> driving_{false};
  std::atomic<int> waiters_{0};
  std::atomic<bool> has_failure_{false};

  std::mutex mutex_;  // of everything below
  std::condition_variable changed_;
  std::vector<Task> ring_;
  Status failure_;
  bool worker_wanted_ = false;
  bool ending_ = false;
  std::thread worker_;
};

}  // namespace pkcomm::host
