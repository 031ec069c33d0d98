// support/cuda.hpp in builds without CUDA: PKCOMM_TEST_PLATFORM=cuda has been refused before anything here is called.
#include "support/cuda.hpp"
#include "support/platform.hpp"

namespace pkcomm::test {

const bool kHaveCuda = false;

int cuda_device_count() { give_up("no CUDA"); }
void cuda_set_device(int) { give_up("no CUDA"); }
std::size_t cuda_free_bytes() { give_up("no CUDA"); }
void* cuda_allocate_pinned(std::size_t) { give_up("no CUDA"); }
void* cuda_allocate_device(std::size_t) { give_up("no CUDA"); }
void cuda_copy(pkcommStream_t, void*, const void*, std::size_t) { give_up("no CUDA"); }

}  // namespace pkcomm::test
