// Shareable memory of the host platform: memfd, which needs no /dev/shm, has no name that could be left behind, and is
// freed with its last mapping.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "platform/host/host_platform.hpp"

namespace pkcomm::host {
namespace {

Status system_failure(const char* call, std::size_t bytes) {
  const int error = errno;
  return Status(error == ENOMEM ? pkcommOutOfMemory : pkcommSystemError,
                std::string(call) + " of " + std::to_string(bytes) + " bytes: " + std::strerror(error));
}

}  // namespace

std::size_t HostPlatform::granularity() const { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

Result<int> HostPlatform::create_memory(std::size_t bytes) {
  const int descriptor = memfd_create("pkcomm", MFD_CLOEXEC);
  if (descriptor < 0) return system_failure("memfd_create", bytes);
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    Status status = system_failure("ftruncate", bytes);
    close(descriptor);
    return status;
  }
  return descriptor;
}

Result<std::byte*> HostPlatform::reserve(std::size_t bytes) {
  void* const base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return system_failure("reserving addresses", bytes);
  return static_cast<std::byte*>(base);
}

void HostPlatform::release(std::byte* base, std::size_t bytes) { munmap(base, bytes); }

Status HostPlatform::map(int descriptor, std::uint64_t offset, std::size_t bytes, std::byte* at) {
  void* const mapped =
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return system_failure("mmap", bytes);
  return {};
}

}  // namespace pkcomm::host
