// How GPUs are joined, which CUDA does not tell.
#pragma once

#include "facts.hpp"

namespace pkcomm::info {

/// Completes the GPUs by their links, and the pairs by their paths.
Nvml ask_nvml(Cuda& cuda);

}  // namespace pkcomm::info
