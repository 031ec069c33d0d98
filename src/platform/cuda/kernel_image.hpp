// Device code as it is handed to a loader.
#pragma once

#include <cstddef>

namespace pkcomm::cuda {

/// Compiled device code (cubin or fat binary) in static memory.
struct KernelImage {
  const char* name;  // for messages
  const void* data;
  std::size_t bytes;
};

struct KernelName {
  int image;  // index of the image that has it
  const char* name;
};

}  // namespace pkcomm::cuda
