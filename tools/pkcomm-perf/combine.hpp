// From what each rank measured to what a row says.
#pragma once

#include <memory>
#include <vector>

#include "row.hpp"
#include "subject.hpp"
#include "trial.hpp"

namespace pkcomm::perf {

/// The one time that stands for all: of each repetition the ranks' times as `how` says, of these the
/// median. `times` holds all repetitions of rank 0, then of rank 1, and so on.
double one_time(const std::vector<double>& times, std::size_t repetitions, Across how);

/// The half of a row, on rank 0; elsewhere without figures. `trials`: of one backend, or of pkcomm and then
/// NCCL. `samples`: of the first, or empty. Collective.
Result<Half> combine(const Context& context, const Subject& subject,
                     const std::vector<std::unique_ptr<Trial>>& trials,
                     const std::vector<Iteration>& samples);

}  // namespace pkcomm::perf
