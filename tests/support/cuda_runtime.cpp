// support/cuda.hpp by the CUDA runtime, linked statically: it looks for the driver when it is first called, so the suites
// load and run on machines without one.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "support/cuda.hpp"
#include "support/cuda_use.hpp"
#include "support/platform.hpp"

namespace pkcomm::test {
namespace {

void require(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  char text[256];
  std::snprintf(text, sizeof text, "%s: %s", call, cudaGetErrorString(error));
  give_up(text);
}

int count_devices() {
  int count = 0;
  require(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

}  // namespace

const bool kHaveCuda = true;

int cuda_device_count() {
  if (cuda_in_use()) return count_devices();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(std::min(count_devices(), 100));
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status))
    give_up("cannot count the devices");
  if (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) > 100) give_up("there is no device");
  return WEXITSTATUS(status);
}

void cuda_set_device(int device) { require(cudaSetDevice(device), "cudaSetDevice"); }

std::size_t cuda_free_bytes() {
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

void* cuda_allocate_pinned(std::size_t bytes) {
  void* at = nullptr;
  require(cudaHostAlloc(&at, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
  return at;
}

void* cuda_allocate_device(std::size_t bytes) {
  void* at = nullptr;
  require(cudaMalloc(&at, bytes), "cudaMalloc");
  return at;
}

void cuda_copy(pkcommStream_t stream, void* to, const void* from, std::size_t bytes) {
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

}  // namespace pkcomm::test
