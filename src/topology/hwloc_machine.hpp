// The one hwloc topology of this process, for the two files here that ask it. Loaded when first asked for, which takes
// milliseconds, and then shared read-only; hwloc allows that from any thread.
#pragma once

#include <hwloc.h>

namespace pkcomm::topology {

/// Null where hwloc could not read the machine. Never freed: threads may ask until the process ends.
hwloc_topology_t hwloc_machine();

}  // namespace pkcomm::topology
