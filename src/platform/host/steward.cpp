// The steward's rounds.
#include "platform/host/steward.hpp"

#include <algorithm>
#include <chrono>

#include "base/log.hpp"
#include "base/process.hpp"
#include "platform/host/stream.hpp"

namespace pkcomm::host {
namespace {

// Work is unattended when a whole round has seen it so: a worker starts within two rounds.
constexpr auto kRound = std::chrono::microseconds(400);
constexpr int kIdleRounds = 250;  // 100 ms without any work: then sleep until there is some

PerProcess<Steward> steward;

}  // namespace

Steward& Steward::instance() {
  return steward.get([](Steward& self) {
    log_if_failed(start_background_thread("pkcomm-steward", [&self] { self.run(); }));
  });
}

void Steward::add(Stream* stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
}

void Steward::remove(Stream* stream) {
  const std::lock_guard lock(mutex_);
  std::erase(streams_, stream);
}

void Steward::wake() {
  // Under the lock, so that the steward is either before its last look or asleep.
  const std::lock_guard lock(mutex_);
  asleep_.store(false, std::memory_order_relaxed);
  changed_.notify_all();
}

void Steward::attend() {
  {
    const std::lock_guard lock(mutex_);
    const bool others = std::any_of(streams_.begin(), streams_.end(), [](const Stream* stream) {
      return !stream->idle() && !stream->driven();
    });
    if (!others) return;
    hurry_ = true;
    asleep_.store(false, std::memory_order_relaxed);
  }
  changed_.notify_all();
}

bool Steward::look(bool at_once) {
  bool work = false;
  for (Stream* const stream : streams_) {
    if (stream->idle()) {
      stream->unattended_ticks = 0;
      continue;
    }
    work = true;
    if (stream->driven()) {
      stream->unattended_ticks = 0;
    } else if (++stream->unattended_ticks > 1 || at_once) {
      stream->start_worker();
    }
  }
  return work;
}

void Steward::run() {
  std::unique_lock lock(mutex_);
  int idle_rounds = 0;
  for (;;) {
    idle_rounds = look(std::exchange(hurry_, false)) ? 0 : idle_rounds + 1;
    if (idle_rounds > kIdleRounds) {
      asleep_.store(true, std::memory_order_relaxed);
      // Through the streams' locks: whoever enqueues after this look sees `asleep_`, and this look sees who was before.
      const bool idle = std::all_of(streams_.begin(), streams_.end(),
                                    [](Stream* stream) { return stream->idle_for_certain(); });
      if (idle) changed_.wait(lock, [this] { return !asleep_.load(std::memory_order_relaxed); });
      asleep_.store(false, std::memory_order_relaxed);
      idle_rounds = 0;
    } else {
      changed_.wait_for(lock, kRound, [this] { return hurry_; });
    }
  }
}

}  // namespace pkcomm::host
