// What one rank does from its first word to its last: join the team, open a communicator, go through the
// tables in step with the others. Rank 0 reports as well.
#pragma once

#include "options.hpp"
#include "rank_status.hpp"
#include "result.hpp"
#include "team.hpp"

namespace pkcomm::perf {

/// Returns the exit code: 0, or kExitWrongData.
Result<int> run_rank(const Options& options, const MeetingPoint& where, int rank, int nranks,
                     RankStatus& status);

}  // namespace pkcomm::perf
