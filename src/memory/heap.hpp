// One rank's view of the symmetric heap: collective allocation on top of SymmetricMemory, and the question whether an
// address is symmetric. Not for several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.hpp"
#include "bootstrap/membership.hpp"
#include "memory/block_allocator.hpp"
#include "memory/symmetric_memory.hpp"

namespace pkcomm {

class Heap {
 public:
  /// `membership` and `memory` outlive it. The heap begins `start` bytes into every part and may grow to `limit` bytes.
  Heap(bootstrap::Membership& membership, SymmetricMemory& memory, int rank, std::uint64_t start,
       std::uint64_t limit, std::size_t granularity);

  /// Collective; see pkcommHeapAlloc.
  Result<std::byte*> allocate(std::uint64_t bytes, bootstrap::Deadline deadline);
  Status free(const void* ptr);

  /// Offset within a part of [ptr, ptr + bytes) where that is within one block of this rank's heap.
  std::optional<std::uint64_t> offset_of(const void* ptr, std::uint64_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(ptr) - reinterpret_cast<std::uintptr_t>(own_);
    if (at >= limit_ || !blocks_.contains(at, bytes)) return std::nullopt;
    return start_ + at;
  }
  std::byte* address(int rank, std::uint64_t offset) const;
  std::uint64_t used() const { return blocks_.used(); }
  std::uint64_t limit() const { return limit_; }
  std::uint64_t history() const { return blocks_.history(); }

 private:
  bootstrap::Membership& membership_;
  SymmetricMemory& memory_;
  const int rank_;
  const std::uint64_t start_;
  const std::uint64_t limit_;
  const std::size_t granularity_;
  std::byte* const own_;
  BlockAllocator blocks_;
};

}  // namespace pkcomm
