// Launches of the kernels of exchange.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "pkcomm/pkcomm.h"

namespace pkcomm::test {

/// Loads the kernels on the current device: nothing may be loaded behind a kernel that waits.
cudaError_t load_exchange();
/// Both ints at `wrong` and `come` are in memory that host and device see; the first begins as 0.
cudaError_t launch_exchange(const pkcommDeviceView_t& view, int* mine, int ints, int rounds, int* wrong,
                            cudaStream_t stream);
cudaError_t launch_wait(const pkcommDeviceView_t& view, int peer, int index, int* come, cudaStream_t stream);

}  // namespace pkcomm::test
