// What a kernel here looks like. All take what they need of their communicator as parameters: no memory is read on the way
// to the first useful instruction. Names are what kernels.cpp makes of a call, so a kernel needs no entry in any list.
//
// Launch shape: as many CTAs and threads on all ranks, 512 threads at most, any number of CTAs up to kMaxCtas; no
// shared memory of the launch's. May have the attribute of programmatic dependent launch.
#pragma once

#include "collectives/operation.hpp"
#include "platform/cuda/device_policy.cuh"
#include "protocol/layout.hpp"

/// A kernel that runs `...` with the policy `x` and its last parameter `type name`.
#define PK_KERNEL_WITH(kernel_name, policy, type, name, ...)                                            \
  extern "C" __global__ void __launch_bounds__(512, 1) kernel_name(                                     \
      const __grid_constant__ pkcomm::View view, const __grid_constant__ pkcomm::cuda::DeviceLink link, \
      const __grid_constant__ type name) {                                                              \
    policy x(view, link);                                                                               \
    __VA_ARGS__;                                                                                        \
  }
/// The same for a collective `op` of `ranks` ranks (0: any).
#define PK_KERNEL(kernel_name, ranks, ...) \
  PK_KERNEL_WITH(kernel_name, pkcomm::cuda::DevicePolicy<ranks>, pkcomm::Operation, op, __VA_ARGS__)
