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
// The first sleep may miss its wake (bell.hpp), so it is short; later ones are bounded for deadlines' sake.
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
    in_trouble(nullptr, nullptr, -1);
    return false;
  }
  if (call.operation == 0) return true;
  // Read by peers only when calls do not match; atomic, since the ring turns.
  CallRecord* const record = view_.call(view_.rank, call.operation);
  store_relaxed(&record->operation, std::uint64_t{0});
  store_relaxed(&record->count, call.count);
  store_relaxed(&record->collective, call.collective);
  store_relaxed(&record->dtype, call.dtype);
  store_relaxed(&record->op, call.op);
  store_relaxed(&record->root, call.root);
  store_relaxed(&record->fingerprint, call.fingerprint);
  store_release(&record->operation, call.operation);
  return true;
}

bool Waiter::end() {
  if (load_relaxed(&view_.control(view_.rank)->poison) != 0) in_trouble(nullptr, nullptr, -1);
  return !failed();
}

bool Waiter::wait_slowly(bool (*ready)(const void*), const void* self, int peer, const char* phase) {
  const auto start = Clock::now();
  const auto spin_end = start + std::chrono::microseconds(options_.spin_us);
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (ready(self)) return true;
      __builtin_ia32_pause();
    }
    if (in_trouble(ready, self, peer)) return false;
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
    if (in_trouble(ready, self, peer)) return false;
    const auto waited_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
    if (options_.timeout_ms > 0 && waited_ms >= options_.timeout_ms) {
      fail_timeout(peer, phase, waited_ms);
      return false;
    }
    if (options_.timeout_ms > 0) {
      sleep_us = std::min(sleep_us, (options_.timeout_ms - waited_ms) * 1000);
    }
    sleep_on_bell(own, seen, sleep_us);
    sleep_us = std::min(sleep_us * 4, kLongestSleepUs);
  }
}

bool Waiter::in_trouble(bool (*ready)(const void*), const void* self, int peer) {
  const ControlBlock* const own = view_.control(view_.rank);
  if (load_acquire(&own->aborted) != 0) {
    fail(pkcommAborted, "the communicator was aborted");
    return true;
  }
  if (const std::uint64_t poison = load_acquire(&own->poison); poison != 0) {
    const int rank = static_cast<int>(static_cast<std::uint32_t>(poison)) - 1;
    const auto code = static_cast<pkcommResult_t>(poison >> 32);
    const char* const text = view_.control(rank)->error_text;
    fail(code, text[0] != '\0' ? rank_name(rank) + " gave up: " + text
                               : rank_name(rank) + " died: its connection closed");
    return true;
  }
  if (peer < 0) return false;
  if (call_.operation != 0 && calls_differ(peer)) return true;
  if (load_acquire(&view_.control(peer)->left) != 0 && !ready(self)) {
    fail(pkcommRemoteError, rank_name(peer) + " has left the communicator");
    return true;
  }
  return false;
}

bool Waiter::calls_differ(int peer) {
  const std::uint64_t word = load_acquire(view_.progress(view_.rank, peer));
  if (operation_of(word) < call_.operation) return false;
  if (operation_of(word) == call_.operation) {
    return !agrees(&word, make_word(call_.operation, call_.fingerprint), peer);
  }
  // The peer is ahead and its progress word is another operation's: its list of calls still tells.
  const CallRecord theirs = call_of(peer, call_.operation);
  if (theirs.operation != call_.operation) return false;
  const std::uint64_t seen = make_word(theirs.operation, theirs.fingerprint);
  return !agrees(&seen, make_word(call_.operation, call_.fingerprint), peer);
}

CallRecord Waiter::call_of(int rank, std::uint64_t operation) const {
  const CallRecord* const record = view_.call(rank, operation);
  CallRecord copy{};
  copy.operation = load_acquire(&record->operation);
  copy.count = load_relaxed(&record->count);
  copy.collective = load_relaxed(&record->collective);
  copy.dtype = load_relaxed(&record->dtype);
  copy.op = load_relaxed(&record->op);
  copy.root = load_relaxed(&record->root);
  copy.fingerprint = load_relaxed(&record->fingerprint);
  return copy;
}

bool Waiter::agrees(const std::uint64_t* word, std::uint64_t expected, int peer) {
  const std::uint64_t seen = load_acquire(word);
  if (seen == expected || operation_of(seen) != operation_of(expected)) return true;
  const std::uint64_t operation = operation_of(expected);
  const CallRecord theirs = call_of(peer, operation);
  const std::string what = theirs.operation == operation ? options_.describe(theirs) : "something else";
  const std::string own = options_.describe(call_);
  // What the words leave out is which memory was given.
  fail(pkcommMismatch, rank_name(peer) + " called " + what + ", this rank (" + std::to_string(view_.rank) +
                           ") " + own + (what == own ? " with other symmetric memory" : "") + ", operation " +
                           std::to_string(operation));
  return false;
}

void Waiter::fail_timeout(int peer, const char* phase, std::int64_t waited_ms) {
  std::string text = options_.describe(call_);
  if (call_.operation != 0) text += ", operation " + std::to_string(call_.operation);
  text += ": rank " + std::to_string(view_.rank) + " waited " + std::to_string(waited_ms) + " ms for " +
          (peer >= 0 ? rank_name(peer) : std::string("its peers")) + " (" + phase + ")";
  if (peer >= 0 && call_.operation != 0) {
    text += "; that rank has entered operation " +
            std::to_string(operation_of(load_acquire(view_.progress(view_.rank, peer))));
  }
  fail(pkcommTimeout, std::move(text));
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
  fail(pkcommAborted, "the communicator was aborted by rank " + std::to_string(view_.rank));
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

std::string Waiter::rank_name(int rank) const {
  return "rank " + std::to_string(rank) + " (pid " +
         std::to_string(options_.pids[static_cast<std::size_t>(rank)]) + ")";
}

}  // namespace pkcomm::host
