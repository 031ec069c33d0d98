// The memory that collectives work on. Each buffer has room on both sides that nobody may write; poison
// there, and in the output before a check, makes stray writes and missing ones visible.
#pragma once

#include <cstddef>

#include "backend.hpp"
#include "result.hpp"

namespace pkcomm::perf {

inline constexpr int kPoisonByte = 0xA5;
inline constexpr std::size_t kGuardBytes = 4096;  // a page: what a store of one tile too many would hit

/// One buffer of one rank. Move-only.
class Buffer {
 public:
  /// Room for `bytes`; symmetric memory is a collective matter. `backend` outlives it.
  static Result<Buffer> make(Backend& backend, Memory memory, std::size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();

  /// Where the payload begins; its alignment is a page's, and a block's of the heap.
  std::byte* data() const { return base_ + kGuardBytes; }

 private:
  Buffer(Backend& backend, Memory memory, std::byte* base, std::size_t bytes)
      : backend_(backend), memory_(memory), base_(base), bytes_(bytes) {}

  Backend& backend_;
  Memory memory_;
  std::byte* base_;
  std::size_t bytes_;  // with both guards
};

/// Bytes that a buffer for `bytes` takes.
inline std::size_t footprint(std::size_t bytes) { return bytes + 2 * kGuardBytes; }

/// Fills a stretch and both its guards with poison.
Outcome poison(Device& device, std::byte* data, std::size_t bytes);

/// How many bytes of the guards around a stretch are no longer poison.
Result<std::size_t> guard_damage(Device& device, const std::byte* data, std::size_t bytes);

/// How many of `bytes` bytes are no longer poison.
Result<std::size_t> damage(Device& device, const std::byte* data, std::size_t bytes);

}  // namespace pkcomm::perf
