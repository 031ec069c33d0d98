// The device kernels as the host knows them: images to load, names to look up, and which kernel serves a call. No CUDA here;
// the kernels are in the *.cu files of this folder, and what the build takes from those is in cmake/embed_kernels.cmake.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "collectives/algorithm.hpp"
#include "collectives/operation.hpp"
#include "platform/cuda/kernel_image.hpp"

namespace pkcomm::cuda {

std::span<const KernelImage> kernel_images() noexcept;

/// All kernels, by image.
std::span<const KernelName> kernels() noexcept;

/// The kernel, an index of kernels(), that runs one operation (a segment of each_segment()) by `algorithm`. Its parameters
/// are View, DeviceLink, Operation. This rank's own choice: it depends on the alignment of the rank's buffers, and ranks
/// with different kernels understand each other.
Result<int> kernel_for(const Operation& op, Algorithm algorithm, int nranks);

/// Threads of a CTA for it: the same on all ranks.
int threads_for(Collective collective, Algorithm algorithm, std::uint64_t block_bytes, int ctas, int nranks);

/// Kernels of work that is no collective. Parameters: View, DeviceLink and what is named.
struct OtherKernels {
  int pairwise_few, pairwise_many;  // TransferBatch<kFewTransfers>, TransferBatch<kManyTransfers>
  int put;                          // PutWork; any number of CTAs
  int signal;                       // SignalWork; one CTA
  int wait_signal;                  // WaitSignalWork; one CTA
};
const OtherKernels& other_kernels() noexcept;

inline constexpr int kFewestThreads = 128, kMostThreads = 512;  // of a CTA, any kernel

}  // namespace pkcomm::cuda
