// --explain: asks the dispatcher how it would do each row, here or on a recorded machine, and starts no
// ranks.
#pragma once

#include "options.hpp"

namespace pkcomm::perf {

/// Prints to standard output; returns the exit code.
int explain(const Options& options, int nranks);

}  // namespace pkcomm::perf
