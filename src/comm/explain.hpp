// Explanations without a communicator: for the machine at hand or a recorded one.
#pragma once

#include "base/status.hpp"
#include "dispatch/plan.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm {

/// Whether a call could look like this. `needs_nranks`: there is no communicator that knows.
Status validate_explain_request(const pkcommExplainRequest_t& request, bool needs_nranks);

Result<dispatch::Explanation> explain_machine(const pkcommExplainRequest_t& request);

}  // namespace pkcomm
