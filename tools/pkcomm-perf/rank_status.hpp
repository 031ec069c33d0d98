// What each rank is doing, in memory that its process shares with the one that started it. So whoever is left
// can say what the dead and the stuck were at.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

#include "clock.hpp"

namespace pkcomm::perf {

/// Written by its rank; read by the starter, the texts only when the writer has ended. All zeros is a valid
/// start.
class RankStatus {
 public:
  /// The rank begins a test, on which the time limit (-T) is counted.
  void begin(const std::string& doing) {
    std::snprintf(doing_, sizeof doing_, "%s", doing.c_str());
    since_ms_.store(steady_ms(), std::memory_order_relaxed);
  }
  /// The test is over; nothing is counted.
  void end() { since_ms_.store(0, std::memory_order_relaxed); }

  void fail(const std::string& text, bool hearsay) {
    hearsay_ = hearsay;
    std::snprintf(text_, sizeof text_, "%s", text.c_str());
    failed_.store(true, std::memory_order_release);  // [failure], acquired by failed()
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }  // [failure]

  /// Milliseconds that the present test has taken; 0 between tests.
  std::int64_t running_ms(std::int64_t now_ms) const {
    const std::int64_t since = since_ms_.load(std::memory_order_relaxed);  // a hint for a limit of seconds
    return since == 0 ? 0 : now_ms - since;
  }
  bool hearsay() const { return hearsay_; }
  const char* text() const { return text_; }
  const char* doing() const { return doing_; }

 private:
  std::atomic<std::int64_t> since_ms_{0};
  std::atomic<bool> failed_{false};
  bool hearsay_ = false;
  char doing_[128]{};
  char text_[640]{};
};

}  // namespace pkcomm::perf
