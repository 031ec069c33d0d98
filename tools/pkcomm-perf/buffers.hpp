// The memory that collectives work on. Each buffer has room on both sides that nobody may write; poison
// there, and in the output before a check, makes stray writes and missing ones visible.
#pragma once

#include <cstddef>

#include "options.hpp"
#include "pkcomm/pkcomm.h"
#include "result.hpp"

namespace pkcomm::perf {

inline constexpr int kPoisonByte = 0xA5;
inline constexpr std::size_t kGuardBytes = 4096;  // a page: what a store of one tile too many would hit

/// One buffer of one rank. Move-only.
class Buffer {
 public:
  /// Room for `bytes`. From the heap: collective.
  static Result<Buffer> make(Memory memory, std::size_t bytes, pkcommComm_t comm);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();

  /// Where the payload begins; its alignment is a page's.
  std::byte* data() const { return base_ + kGuardBytes; }

 private:
  Buffer(Memory memory, std::byte* base, std::size_t bytes, pkcommComm_t comm)
      : memory_(memory), base_(base), bytes_(bytes), comm_(comm) {}

  Memory memory_;
  std::byte* base_;
  std::size_t bytes_;  // with both guards
  pkcommComm_t comm_;
};

/// Bytes that a buffer for `bytes` takes.
inline std::size_t footprint(std::size_t bytes) { return bytes + 2 * kGuardBytes; }

/// Fills a stretch and both its guards with poison.
void poison(std::byte* data, std::size_t bytes);

/// How many bytes of the guards around a stretch are no longer poison.
std::size_t guard_damage(const std::byte* data, std::size_t bytes);

/// How many of `bytes` bytes are no longer poison.
std::size_t damage(const std::byte* data, std::size_t bytes);

}  // namespace pkcomm::perf
