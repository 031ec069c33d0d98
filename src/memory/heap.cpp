// Ranks compare what they want and what they did before, then all do the same: equal states lead to equal decisions.
#include "memory/heap.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace pkcomm {
namespace {

// Chunks are at least this large: the mapping granularity of GPUs, and few exchanges for many small blocks.
constexpr std::uint64_t kLeastChunk = 2 << 20;

struct Wish {
  std::uint64_t bytes;
  std::uint64_t history;
};

}  // namespace

Heap::Heap(bootstrap::Membership& membership, SymmetricMemory& memory, int rank, std::uint64_t start,
           std::uint64_t limit, std::size_t granularity)
    : membership_(membership),
      memory_(memory),
      rank_(rank),
      start_(start),
      limit_(limit),
      granularity_(granularity),
      own_(memory_.base() + static_cast<std::uint64_t>(rank) * memory_.stride() + start) {}

std::byte* Heap::address(int rank, std::uint64_t offset) const {
  return memory_.base() + static_cast<std::uint64_t>(rank) * memory_.stride() + offset;
}

Result<std::byte*> Heap::allocate(std::uint64_t bytes, bootstrap::Deadline deadline) {
  const Wish mine{bytes, blocks_.history()};
  std::vector<Wish> all(static_cast<std::size_t>(membership_.nranks()));
  PK_TRY(membership_.all_gather(rank_, "heap allocation", std::as_bytes(std::span(&mine, 1)),
                                std::as_writable_bytes(std::span(all)), deadline));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].bytes != bytes) {
      return Status(pkcommInvalidUsage, "heap allocation: rank " + std::to_string(rank) + " asks for " +
                                            std::to_string(all[rank].bytes) + " bytes, this rank (" +
                                            std::to_string(rank_) + ") for " + std::to_string(bytes));
    }
    if (all[rank].history != mine.history) {
      return Status(pkcommInvalidUsage, "heap allocation: rank " + std::to_string(rank) + " and this rank (" +
                                            std::to_string(rank_) +
                                            ") have allocated or freed different blocks before");
    }
  }
  if (bytes == 0) return static_cast<std::byte*>(nullptr);

  auto offset = blocks_.allocate(bytes);
  if (!offset) {
    const std::uint64_t room = limit_ - blocks_.capacity();
    const std::uint64_t missing =
        bytes > limit_ ? bytes : BlockAllocator::padded(bytes) - blocks_.free_at_end();
    if (missing > room) {
      return Status(pkcommOutOfMemory, "the symmetric heap is limited to " + std::to_string(limit_) +
                                           " bytes a rank (PKCOMM_HEAP_SIZE), " +
                                           std::to_string(blocks_.used()) + " are in use and " +
                                           std::to_string(bytes) + " more were asked for");
    }
    const std::uint64_t whole = (missing + kLeastChunk - 1) / kLeastChunk * kLeastChunk;
    const std::uint64_t chunk = std::min(whole, room);
    PK_TRY(memory_.grow(rank_, (chunk + granularity_ - 1) / granularity_ * granularity_, "heap growth",
                        deadline));
    blocks_.extend(chunk);
    offset = blocks_.allocate(bytes);
  }
  return own_ + *offset;
}

Status Heap::free(const void* ptr) {
  const auto at = reinterpret_cast<std::uintptr_t>(ptr) - reinterpret_cast<std::uintptr_t>(own_);
  if (at >= limit_ || !blocks_.free(at)) {
    return Status(pkcommInvalidArgument,
                  "ptr " + std::to_string(reinterpret_cast<std::uintptr_t>(ptr)) +
                      " is not the start of a block of this heap; it may have been freed before");
  }
  return {};
}

}  // namespace pkcomm
