// A kernel as a user would write one with pkcomm/device.cuh, and its launch.
#include "gpu/exchange.hpp"
#include "pkcomm/device.cuh"

namespace pkcomm::test {
namespace {

/// Round after round: writes a pattern into the block of the next rank, tells it, and checks what the rank before wrote
/// here. `wrong` counts ints that are not as they should be; -1: a wait was given up.
__global__ void exchange_kernel(pkcommDeviceView_t view, int* mine, int ints, int rounds, int* wrong) {
  const int next = (view.rank + 1) % view.nranks, before = (view.rank + view.nranks - 1) % view.nranks;
  int* const theirs = device::at_peer(view, mine, next);
  for (int round = 0; round < rounds; ++round) {
    for (int i = static_cast<int>(threadIdx.x); i < ints; i += static_cast<int>(blockDim.x)) {
      theirs[i] = view.rank * 1000003 + round * 1009 + i;
    }
    __syncthreads();
    if (threadIdx.x == 0) device::signal(view, next, 0);
    if (!device::wait_block(view, before, 0, 1)) {
      if (threadIdx.x == 0) *wrong = -1;
      return;
    }
    for (int i = static_cast<int>(threadIdx.x); i < ints; i += static_cast<int>(blockDim.x)) {
      if (mine[i] != before * 1000003 + round * 1009 + i) atomicAdd(wrong, 1);
    }
    // Only when it has been read here may the rank before write again.
    __syncthreads();
    if (threadIdx.x == 0) device::signal(view, before, 1);
    if (!device::wait_block(view, next, 1, 1)) {
      if (threadIdx.x == 0) *wrong = -1;
      return;
    }
  }
}

__global__ void wait_kernel(pkcommDeviceView_t view, int peer, int index, int* come) {
  const bool ok = device::wait_block(view, peer, index, 1);
  if (threadIdx.x == 0) *come = ok ? 1 : 0;
}

}  // namespace

cudaError_t launch_exchange(const pkcommDeviceView_t& view, int* mine, int ints, int rounds, int* wrong,
                            cudaStream_t stream) {
  exchange_kernel<<<1, 256, 0, stream>>>(view, mine, ints, rounds, wrong);
  return cudaGetLastError();
}

cudaError_t launch_wait(const pkcommDeviceView_t& view, int peer, int index, int* come, cudaStream_t stream) {
  wait_kernel<<<1, 64, 0, stream>>>(view, peer, index, come);
  return cudaGetLastError();
}

cudaError_t load_exchange() {
  cudaFuncAttributes attributes;
  const cudaError_t first = cudaFuncGetAttributes(&attributes, exchange_kernel);
  return first != cudaSuccess ? first : cudaFuncGetAttributes(&attributes, wait_kernel);
}

}  // namespace pkcomm::test
