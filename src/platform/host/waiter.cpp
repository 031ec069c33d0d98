// The slow half of waiting, and giving up.
#include "platform/host/waiter.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "platform/host/bell.hpp"
#include "platform/host/steward.hpp"

namespace pkcomm::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLooksPerClock = 32;
constexpr int kYields = 20;
// Sleeps may miss a wake until one has lasted its whole time (bell.hpp), so they are short; later ones are bounded for
// deadlines' sake.
constexpr std::int64_t kFirstSleepUs = 500;
constexpr std::int64_t kLongestSleepUs = 50000;

std::uint64_t poison_word(pkcommResult_t code, int rank) {
  return static_cast<std::uint64_t>(code) << 32 | static_cast<std::uint32_t>(rank + 1);
}

/// Registers a sleeper for as long as it lives.
class Registration {
 public:
  explicit Registration(ControlBlock* control) : control_(control) {
    fetch_add(&control_->sleepers, std::uint32_t{1});
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() { fetch_add(&control_->sleepers, ~std::uint32_t{0}); }

 private:
  ControlBlock* control_;
};

}  // namespace

bool Waiter::begin(const CallRecord& call) {
  call_ = call;
  ControlBlock* const own = view_.control(view_.rank);
  if (failed()) return false;
  if (load_relaxed(&own->aborted) != 0 || load_relaxed(&own->poison) != 0) {
    in_trouble(nullptr, nullptr, {});
    return false;
  }
  if (call.word == 0) return true;
  // Read by peers only when calls do not match; atomic, since the ring turns.
  CallRecord* const record = view_.call(view_.rank, operation_of(call.word));
  store_relaxed(&record->word, std::uint64_t{0});
  store_relaxed(&record->count, call.count);
  store_relaxed(&record->collective, call.collective);
  store_relaxed(&record->dtype, call.dtype);
  store_relaxed(&record->op, call.op);
  store_relaxed(&record->root, call.root);
  store_relaxed(&record->fingerprint, call.fingerprint);
  store_release(&record->word, call.word);
  return true;
}

bool Waiter::end() {
  if (load_relaxed(&view_.control(view_.rank)->poison) != 0) in_trouble(nullptr, nullptr, {});
  return !failed();
}

bool Waiter::wait_slowly(bool (*ready)(const void*), const void* self, std::span<const int> peers,
                         const char* phase) {
  const auto start = Clock::now();
  const auto spin_end = start + std::chrono::microseconds(options_.spin_us);
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (ready(self)) return true;
      __builtin_ia32_pause();
    }
    if (in_trouble(ready, self, peers)) return false;
  } while (Clock::now() < spin_end);

  Steward::instance().attend();
  for (int i = 0; i < kYields; ++i) {
    if (ready(self)) return true;
    sched_yield();
  }

  ControlBlock* const own = view_.control(view_.rank);
  const Registration registration(own);
  std::int64_t sleep_us = kFirstSleepUs;
  for (;;) {
    const std::uint32_t seen = load_acquire(&own->bell);
    if (ready(self)) return true;
    if (in_trouble(ready, self, peers)) return false;
    const auto waited_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
    if (options_.timeout_ms > 0 && waited_ms >= options_.timeout_ms) {
      fail_timeout(peers, phase, waited_ms);
      return false;
    }
    if (options_.timeout_ms > 0) {
      sleep_us = std::min(sleep_us, (options_.timeout_ms - waited_ms) * 1000);
    }
    if (!sleep_on_bell(own, seen, sleep_us)) sleep_us = std::min(sleep_us * 4, kLongestSleepUs);
  }
}

bool Waiter::in_trouble(bool (*ready)(const void*), const void* self, std::span<const int> peers) {
  const ControlBlock* const own = view_.control(view_.rank);
  if (load_acquire(&own->aborted) != 0) {
    fail(pkcommAborted, "the communicator was aborted");
    return true;
  }
  if (const std::uint64_t poison = load_acquire(&own->poison); poison != 0) {
    const int rank = static_cast<int>(static_cast<std::uint32_t>(poison)) - 1;
    const auto code = static_cast<pkcommResult_t>(poison >> 32);
    const char* const text = view_.control(rank)->error_text;
    fail(code, reports_.gave_up(rank, text));
    return true;
  }
  for (const int peer : peers) {
    if (call_.word != 0 && calls_differ(peer)) return true;
    if (load_acquire(&view_.control(peer)->left) != 0 && !ready(self)) {
      fail(pkcommRemoteError, reports_.left(peer));
      return true;
    }
  }
  return false;
}

bool Waiter::calls_differ(int peer) {
  const std::uint64_t word = load_acquire(view_.progress(view_.rank, peer));
  if (operation_of(word) < operation_of(call_.word)) return false;
  if (operation_of(word) == operation_of(call_.word)) return !demand(word, call_.word, peer);
  // The peer is ahead and its progress word is another operation's: its list of calls still tells.
  const std::uint64_t theirs = load_acquire(&view_.call(peer, operation_of(call_.word))->word);
  return operation_of(theirs) == operation_of(call_.word) && !demand(theirs, call_.word, peer);
}

CallRecord Waiter::call_of(int rank, std::uint64_t index) const {
  const CallRecord* const record = view_.call(rank, index);
  CallRecord copy{};
  copy.word = load_acquire(&record->word);
  copy.count = load_relaxed(&record->count);
  copy.collective = load_relaxed(&record->collective);
  copy.dtype = load_relaxed(&record->dtype);
  copy.op = load_relaxed(&record->op);
  copy.root = load_relaxed(&record->root);
  copy.fingerprint = load_relaxed(&record->fingerprint);
  return copy;
}

bool Waiter::demand(std::uint64_t seen, std::uint64_t wanted, int peer) {
  if (seen == wanted) return true;
  CallRecords theirs, own;
  for (std::size_t i = 0; i < kCalls; ++i) {
    theirs[i] = call_of(peer, i);
    own[i] = call_of(view_.rank, i);
  }
  fail(pkcommMismatch, reports_.mismatch(peer, theirs, own, operation_of(wanted)));
  return false;
}

void Waiter::fail_timeout(std::span<const int> peers, const char* phase, std::int64_t waited_ms) {
  std::vector<Reports::Awaited> awaited;
  for (const int peer : peers) {
    awaited.push_back({peer, operation_of(load_acquire(view_.progress(view_.rank, peer)))});
  }
  fail(pkcommTimeout, reports_.timeout(call_, awaited, phase, waited_ms));
}

void Waiter::fail(pkcommResult_t code, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    if (failed()) return;
    first_failure_ = Status(code, text);
    failed_.store(true, std::memory_order_release);
  }
  ControlBlock* const own = view_.control(view_.rank);
  std::snprintf(own->error_text, sizeof own->error_text, "%s", text.c_str());
  for (int step = 1; step < view_.nranks; ++step) {
    const int peer = (view_.rank + step) % view_.nranks;
    // Release: the text above is complete for whoever sees the word.
    store_if_zero(&view_.control(peer)->poison, poison_word(code, view_.rank));
    wake_sleepers(view_.control(peer));
  }
  log(code == pkcommAborted ? LogLevel::kInfo : LogLevel::kWarn, text);
}

void Waiter::abort() {
  store_release(&view_.control(view_.rank)->aborted, std::uint64_t{1});
  ring_bell(view_.control(view_.rank));
  fail(pkcommAborted, reports_.aborted());
}

Status Waiter::report() const {
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

Status Waiter::look() {
  const ControlBlock* const own = view_.control(view_.rank);
  if (!failed() && load_relaxed(&own->poison) == 0 && load_relaxed(&own->aborted) == 0) return {};
  (void)end();
  return report();
}

}  // namespace pkcomm::host
