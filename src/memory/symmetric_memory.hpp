// The symmetric memory of one communicator in this process: every rank's part at base + rank * stride, mapped once for
// all ranks that live here. It grows by chunks at the end of every part. One descriptor a process and chunk: the parts of
// a process's ranks lie in it one behind the other, and all descriptors are closed once mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.hpp"
#include "bootstrap/membership.hpp"
#include "platform/platform.hpp"

namespace pkcomm {

class SymmetricMemory {
 public:
  /// Addresses for every rank of `membership`, no memory yet. Both arguments outlive it.
  static Result<std::unique_ptr<SymmetricMemory>> reserve(bootstrap::Membership& membership,
                                                          Platform& platform, std::uint64_t stride);
  ~SymmetricMemory();
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;

  std::byte* base() const { return base_; }
  std::uint64_t stride() const { return stride_; }
  /// Bytes of every part that have memory.
  std::uint64_t mapped() const { return mapped_; }

  /// Adds `bytes` bytes, a multiple of the granularity, to every part.
  /// Collective: all ranks, equal `bytes`; all succeed or all fail.
  Status grow(int rank, std::uint64_t bytes, const char* what, bootstrap::Deadline deadline);

 private:
  SymmetricMemory(bootstrap::Membership& membership, Platform& platform, std::byte* base,
                  std::uint64_t stride)
      : membership_(membership), platform_(platform), base_(base), stride_(stride) {}
  Status map_process(int process, int descriptor, std::uint64_t bytes);

  bootstrap::Membership& membership_;
  Platform& platform_;
  std::byte* const base_;
  const std::uint64_t stride_;
  std::uint64_t mapped_ = 0;
};

}  // namespace pkcomm
