// What the registry of platforms sees of CUDA: no vendor header.
#pragma once

#include "platform/platform.hpp"

namespace pkcomm::cuda {

/// The process's CUDA platform. Errors: as driver(); pkcommUnsupported where no device is visible.
Result<Platform*> process_platform();

}  // namespace pkcomm::cuda
