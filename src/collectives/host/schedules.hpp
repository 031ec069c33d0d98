// The schedules instantiated for the host, a function an algorithm. False: a wait gave up.
#pragma once

#include "collectives/operation.hpp"
#include "platform/host/policy.hpp"

namespace pkcomm::host {

bool run_one_shot_ll(Policy& policy, const Operation& op);
bool run_two_shot_ll(Policy& policy, const Operation& op);
bool run_direct_ldst(Policy& policy, const Operation& op);
bool run_direct_tma(Policy& policy, const Operation& op);
bool run_copy_engine(Policy& policy, const Operation& op);
bool run_multimem_emulated(Policy& policy, const Operation& op);

}  // namespace pkcomm::host
