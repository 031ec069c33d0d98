// This machine as the dispatcher sees it.
#pragma once

#include "platform/platform.hpp"
#include "topology/topology.hpp"

namespace pkcomm {

/// The host, and on CUDA the device that stands for all of them.
Topology machine_of(PlatformKind platform, const DeviceFacts& facts);

}  // namespace pkcomm
