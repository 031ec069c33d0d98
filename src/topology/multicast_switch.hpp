// The operator's switches for multicast objects: pkcomm's own and those of its peers, which are obeyed too, since who sets
// one of them means the machine (docs/platforms.md).
#pragma once

#include <string>

namespace pkcomm::topology {

/// The setting that switches multicast off in this process, as "NCCL_NVLS_ENABLE=0"; empty: none does.
std::string multicast_switched_off();

}  // namespace pkcomm::topology
