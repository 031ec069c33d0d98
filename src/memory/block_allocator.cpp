// First fit over two maps by offset: the free ranges, which never touch each other, and the blocks.
#include "memory/block_allocator.hpp"

#include "base/hash.hpp"

namespace pkcomm {

void BlockAllocator::remember(std::uint64_t event, std::uint64_t offset, std::uint64_t bytes) {
  history_ = mix(mix(mix(history_, event), offset), bytes);
}

std::optional<std::uint64_t> BlockAllocator::allocate(std::uint64_t bytes) {
  const std::uint64_t need = padded(bytes);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, available] = *range;
    if (available < need) continue;
    free_.erase(range);
    if (available > need) free_.emplace(offset + need, available - need);
    blocks_.emplace(offset, Block{need, bytes});
    used_ += need;
    remember(1, offset, bytes);
    return offset;
  }
  return std::nullopt;
}

bool BlockAllocator::free(std::uint64_t offset) {
  const auto block = blocks_.find(offset);
  if (block == blocks_.end()) return false;
  const std::uint64_t bytes = block->second.padded;
  blocks_.erase(block);
  used_ -= bytes;
  remember(2, offset, bytes);
  add_free(offset, bytes);
  return true;
}

void BlockAllocator::extend(std::uint64_t bytes) {
  add_free(capacity_, bytes);
  capacity_ += bytes;
}

void BlockAllocator::add_free(std::uint64_t offset, std::uint64_t bytes) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

bool BlockAllocator::contains(std::uint64_t offset, std::uint64_t bytes) const {
  auto block = blocks_.upper_bound(offset);
  if (block == blocks_.begin()) return false;
  --block;
  const std::uint64_t within = offset - block->first;
  return within <= block->second.bytes && bytes <= block->second.bytes - within;
}

std::uint64_t BlockAllocator::free_at_end() const {
  if (free_.empty()) return 0;
  const auto last = std::prev(free_.end());
  return last->first + last->second == capacity_ ? last->second : 0;
}

}  // namespace pkcomm
