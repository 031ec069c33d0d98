// Plain memory is mapped here rather than malloc'ed, so that its alignment is known and freed pages go back
// at once; symmetric memory comes from the communicator's heap.
#include "buffers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace pkcomm::perf {

Result<Buffer> Buffer::make(Memory memory, std::size_t bytes, pkcommComm_t comm) {
  const std::size_t whole = footprint(bytes);
  void* base = nullptr;
  if (memory == Memory::kHeap) {
    PERF_TRY(check(pkcommHeapAlloc(comm, whole, &base), "pkcommHeapAlloc", comm));
  } else {
    // What malloc would do for large blocks, with an alignment that is known.
    base = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return Error{in_words(whole) + " of memory: " + std::strerror(errno)};
  }
  return Buffer(memory, static_cast<std::byte*>(base), whole, comm);
}

Buffer::Buffer(Buffer&& other) noexcept
    : memory_(other.memory_),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      comm_(other.comm_) {}

Buffer::~Buffer() {
  if (base_ == nullptr) return;
  if (memory_ == Memory::kHeap) {
    (void)pkcommHeapFree(comm_,
                         base_);  // fails only where the communicator has failed, which is reported as such
  } else {
    munmap(base_, bytes_);
  }
}

void poison(std::byte* data, std::size_t bytes) {
  std::memset(data - kGuardBytes, kPoisonByte, bytes + 2 * kGuardBytes);
}

std::size_t damage(const std::byte* data, std::size_t bytes) {
  return bytes - static_cast<std::size_t>(std::count(data, data + bytes, std::byte{kPoisonByte}));
}

std::size_t guard_damage(const std::byte* data, std::size_t bytes) {
  return damage(data - kGuardBytes, kGuardBytes) + damage(data + bytes, kGuardBytes);
}

}  // namespace pkcomm::perf
