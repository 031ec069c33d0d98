// The machine apart from its GPUs, and where the GPUs sit in it.
#pragma once

#include <vector>

#include "facts.hpp"

namespace pkcomm::info {

/// Also gives each GPU the NUMA node that its PCI slot is near.
Host ask_hwloc(std::vector<Gpu>& gpus);

}  // namespace pkcomm::info
