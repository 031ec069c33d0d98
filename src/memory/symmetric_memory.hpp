// The symmetric memory of one communicator in this process: every rank's part at base + rank * stride, mapped once for
// all ranks that live here. It grows by chunks at the end of every part; a chunk of a part is memory of the rank's own
// device with a descriptor of its own, which is closed once everybody has mapped it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "bootstrap/membership.hpp"
#include "platform/platform.hpp"

namespace pkcomm {

class SymmetricMemory {
 public:
  /// Addresses for every rank of `membership`, no memory yet. Membership and platform outlive it. `devices`: of every
  /// rank; those of other processes are not looked at.
  static Result<std::unique_ptr<SymmetricMemory>> reserve(bootstrap::Membership& membership,
                                                          Platform& platform, std::vector<int> devices,
                                                          std::uint64_t stride);
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
  class NewChunk;
  SymmetricMemory(bootstrap::Membership& membership, Platform& platform, std::vector<int> devices,
                  std::byte* base, std::uint64_t stride);
  std::byte* end_of(int rank) const { return base_ + static_cast<std::uint64_t>(rank) * stride_ + mapped_; }

  bootstrap::Membership& membership_;
  Platform& platform_;
  const std::vector<int> devices_;       // of every rank
  std::vector<int> local_devices_;       // that local ranks have, each once
  std::vector<std::vector<int>> ranks_;  // of every process
  std::size_t most_ranks_ = 0;           // of one process
  std::byte* const base_;
  const std::uint64_t stride_;
  std::uint64_t mapped_ = 0;
  std::vector<std::uint64_t> chunks_;  // their bytes, in order
};

}  // namespace pkcomm
