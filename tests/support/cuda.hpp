// What the tests of both platforms need of the CUDA runtime, without its header: devices, memory and copies. In builds
// without CUDA (cuda_absent.cpp) nothing of it may be called.
#pragma once

#include <cstddef>

#include "pkcomm/pkcomm.h"

namespace pkcomm::test {

extern const bool kHaveCuda;

/// Asked in a forked child while this process has not touched CUDA, so that it may fork further ones.
int cuda_device_count();
void cuda_set_device(int device);
std::size_t cuda_free_bytes();
/// Pinned host memory that kernels of every device reach at the same address.
void* cuda_allocate_pinned(std::size_t bytes);
void* cuda_allocate_device(std::size_t bytes);
/// Enqueues a copy between any two of pinned, device and peers' memory.
void cuda_copy(pkcommStream_t stream, void* to, const void* from, std::size_t bytes);

}  // namespace pkcomm::test
