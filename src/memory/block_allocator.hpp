// Sub-allocation of a growing range by offset: first fit in address order, so that equal calls in equal order give equal
// offsets on every rank. Keeps a hash of its history by which ranks compare that order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace pkcomm {

class BlockAllocator {
 public:
  static constexpr std::uint64_t kAlignment = 256;

  /// Offset of a free range of `bytes` > 0; nothing where none is left.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  /// Whether a block started there.
  bool free(std::uint64_t offset);
  /// Adds `bytes` bytes at the end.
  void extend(std::uint64_t bytes);

  /// Whether [offset, offset + bytes) lies within one block.
  bool contains(std::uint64_t offset, std::uint64_t bytes) const;
  /// Free bytes at the very end: what an extension would have to add to.
  std::uint64_t free_at_end() const;
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t history() const { return history_; }

  static std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  void remember(std::uint64_t event, std::uint64_t offset, std::uint64_t bytes);
  void add_free(std::uint64_t offset, std::uint64_t bytes);

  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes; never adjacent
  struct Block {
    std::uint64_t padded, bytes;
  };
  std::map<std::uint64_t, Block> blocks_;
  std::uint64_t capacity_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t history_ = 0;
};

}  // namespace pkcomm
