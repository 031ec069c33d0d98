// A point in time at which a wait ends, or none. Made once at the entry of a call and passed down by value, so that
// the steps of one call share its time. Keeps the limit it was made from, for the words of an error.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace pkcomm::bootstrap {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(Clock::time_point::max(), 0); }
  /// `limit_ms` from now; 0 or less: never. More than a year counts as never: clocks overflow beyond.
  static Deadline after_ms(std::int64_t limit_ms) {
    if (limit_ms <= 0 || limit_ms > kLongestMs) return never();
    return Deadline(Clock::now() + std::chrono::milliseconds(limit_ms), limit_ms);
  }
  /// `remaining_ms` from now (0: already passed), for a limit that began earlier and perhaps in another process.
  static Deadline of_limit(std::int64_t limit_ms, std::int64_t remaining_ms) {
    if (limit_ms <= 0 || limit_ms > kLongestMs) return never();
    return Deadline(
        Clock::now() + std::chrono::milliseconds(std::clamp<std::int64_t>(remaining_ms, 0, limit_ms)),
        limit_ms);
  }

  bool is_never() const { return time_ == Clock::time_point::max(); }
  bool passed() const { return !is_never() && Clock::now() >= time_; }
  Clock::time_point time() const { return time_; }
  /// What it was made from; 0: never.
  std::int64_t limit_ms() const { return limit_ms_; }
  /// Milliseconds left, rounded up, 0 once passed; of no meaning for `never`.
  std::int64_t remaining_ms() const {
    return std::max<std::int64_t>(0,
                                  std::chrono::ceil<std::chrono::milliseconds>(time_ - Clock::now()).count());
  }
  /// For poll(2): rounded up, at most `cap_ms`, so that a caller may look at a flag in between; -1: no cap, and for
  /// `never` no end.
  int poll_timeout_ms(int cap_ms = -1) const {
    if (is_never()) return cap_ms;
    return static_cast<int>(std::min<std::int64_t>(remaining_ms(), cap_ms < 0 ? kLongestPollMs : cap_ms));
  }
  /// The earlier of this deadline and `ms` from now.
  Deadline sooner(std::int64_t ms) const {
    return Deadline(std::min(time_, Clock::now() + std::chrono::milliseconds(ms)), limit_ms_);
  }
  /// This deadline put off by `ms`: time for an answer that is sent when it passes.
  Deadline later(std::int64_t ms) const {
    return is_never() ? *this : Deadline(time_ + std::chrono::milliseconds(ms), limit_ms_);
  }

 private:
  static constexpr std::int64_t kLongestPollMs = 1'000'000;  // whoever polls looks at the time afterwards
  static constexpr std::int64_t kLongestMs = 365LL * 24 * 3600 * 1000;
  Deadline(Clock::time_point time, std::int64_t limit_ms) : time_(time), limit_ms_(limit_ms) {}

  Clock::time_point time_;
  std::int64_t limit_ms_;
};

}  // namespace pkcomm::bootstrap
