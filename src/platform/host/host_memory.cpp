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

constexpr int kReservation = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

std::size_t HostPlatform::granularity() const { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

Result<int> HostPlatform::create_memory(int, std::size_t bytes) {
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
  void* const base = mmap(nullptr, bytes, PROT_NONE, kReservation, -1, 0);
  if (base == MAP_FAILED) return system_failure("reserving addresses", bytes);
  return static_cast<std::byte*>(base);
}

void HostPlatform::release(std::byte* base, std::size_t bytes) { munmap(base, bytes); }

Status HostPlatform::map(int descriptor, std::size_t bytes, std::byte* at, std::span<const int>) {
  void* const mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
  if (mapped == MAP_FAILED) return system_failure("mmap", bytes);
  return {};
}

void HostPlatform::unmap(std::byte* at, std::size_t bytes) {
  // The addresses stay reserved: nobody else's mapping may come there before the reservation ends.
  mmap(at, bytes, PROT_NONE, kReservation | MAP_FIXED, -1, 0);
}

Status HostPlatform::clear(int, std::byte*, std::size_t) { return {}; }  // new pages are zero

Status HostPlatform::read(int, void* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}

Status HostPlatform::write(int, std::byte* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}

}  // namespace pkcomm::host
