// The driver's role: a try-lock. Who holds it runs tasks in order; who does not, waits for the count of completed ones.
#include "platform/host/stream.hpp"

#include <chrono>

#include "base/log.hpp"
#include "base/process.hpp"
#include "platform/host/steward.hpp"

namespace pkcomm::host {
namespace {

constexpr std::size_t kFirstSlots = 16;
constexpr int kLooks = 2000;                             // some microseconds: a short task may be nearly over
constexpr auto kLook = std::chrono::microseconds(1000);  // a waiter looks again, should a notice be missed

}  // namespace

Stream::Stream() : ring_(kFirstSlots) { Steward::instance().add(this); }

Stream::~Stream() {
  wait(last_ticket());
  Steward::instance().remove(this);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

std::uint64_t Stream::enqueue(Task task) {
  std::uint64_t ticket;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t head = completed_.load(std::memory_order_acquire);
    const std::uint64_t tail = enqueued_.load(std::memory_order_relaxed);
    // The slot of a running task is not reused: it counts as completed only afterwards.
    if (tail - head == ring_.size()) {
      std::vector<Task> larger(ring_.size() * 2);
      for (std::uint64_t i = head; i < tail; ++i)
        larger[i % larger.size()] = std::move(ring_[i % ring_.size()]);
      ring_ = std::move(larger);
    }
    ring_[tail % ring_.size()] = std::move(task);
    ticket = tail + 1;
    enqueued_.store(ticket, std::memory_order_release);
  }
  Steward::instance().notice();
  return ticket;
}

bool Stream::idle_for_certain() {
  const std::lock_guard lock(mutex_);
  return idle();
}

bool Stream::drive(std::uint64_t ticket) {
  if (driving_.exchange(true, std::memory_order_acquire)) return false;
  while (!done(ticket) && !idle()) {
    Task task;
    {
      const std::lock_guard lock(mutex_);
      task = std::move(ring_[completed_.load(std::memory_order_relaxed) % ring_.size()]);
    }
    if (Status status = task.run(); !status.ok()) {
      const std::lock_guard lock(mutex_);
      if (failure_.ok()) failure_ = std::move(status);
      has_failure_.store(true, std::memory_order_release);
    }
    completed_.fetch_add(1, std::memory_order_release);
    if (waiters_.load(std::memory_order_relaxed) > 0) changed_.notify_all();
  }
  driving_.store(false, std::memory_order_release);
  if (waiters_.load(std::memory_order_relaxed) > 0) changed_.notify_all();
  return true;
}

void Stream::wait(std::uint64_t ticket) {
  for (int look = 0; look < kLooks; ++look) {
    if (done(ticket) || (drive(ticket) && done(ticket))) return;
    __builtin_ia32_pause();
  }
  waiters_.fetch_add(1);
  while (!done(ticket)) {
    if (drive(ticket)) continue;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLook, [&] { return done(ticket) || !driven(); });
  }
  waiters_.fetch_sub(1);
}

Status Stream::take_failure() {
  if (!has_failure_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  has_failure_.store(false, std::memory_order_relaxed);
  return std::exchange(failure_, Status());
}

void Stream::start_worker() {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    if (!worker_.joinable()) {
      auto worker = start_thread("pkcomm-stream", [this] { work(); });
      if (!worker.ok()) {  // the steward will ask again
        log_once("stream worker", LogLevel::kWarn, worker.status().message());
        return;
      }
      worker_ = std::move(worker).value();
    }
    worker_wanted_ = true;
  }
  changed_.notify_all();
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return worker_wanted_ || ending_; });
    if (ending_) return;
    worker_wanted_ = false;
    lock.unlock();
    while (!idle() && drive(last_ticket())) {
    }
    lock.lock();
  }
}

}  // namespace pkcomm::host
