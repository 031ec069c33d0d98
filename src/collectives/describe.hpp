// A call in words, for messages about calls that do not match.
#pragma once

#include <string>

#include "protocol/layout.hpp"

namespace pkcomm {

/// "all_reduce float 1000 sum", "broadcast half 12 root 1".
std::string describe_call(const CallRecord& call);

}  // namespace pkcomm
