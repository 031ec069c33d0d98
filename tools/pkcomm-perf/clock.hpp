// The one clock of the tool. It is steady and, on Linux, the same in all processes of a machine, so that
// times of different ranks can be compared.
#pragma once

#include <chrono>
#include <cstdint>

namespace pkcomm::perf {

inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline std::int64_t steady_ms() { return steady_ns() / 1'000'000; }

}  // namespace pkcomm::perf
