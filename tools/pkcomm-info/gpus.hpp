// The GPUs as the CUDA driver names them: what a program here can use.
#pragma once

#include "facts.hpp"

namespace pkcomm::info {

/// Makes no context and touches no memory.
Cuda ask_cuda();

}  // namespace pkcomm::info
