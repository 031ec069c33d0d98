// Starts the rank processes and answers for them: when one dies, fails or is stuck, or when the user
// interrupts, all end, and one line says why. The starter itself never touches the library.
#pragma once

#include <functional>

#include "rank_status.hpp"
#include "result.hpp"

namespace pkcomm::perf {

struct Crew {
  int first_rank = 0;
  int processes = 1;
  int threads = 1;    // ranks of each process
  int timeout_s = 0;  // of one test; 0: none
};

inline constexpr int kExitWrongData = 1;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

/// What one rank does; its value is the exit code of a rank that came to its end.
using RankBody = std::function<Result<int>(int rank, RankStatus& status)>;

/// Runs `body` once for each rank of the crew, each process forked from here, and returns the exit code: the
/// greatest of the ranks', kExitFailed after a failure, 128 + n after signal n (SIGINT, SIGTERM).
int supervise(const Crew& crew, const RankBody& body);

}  // namespace pkcomm::perf
