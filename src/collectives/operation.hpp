// One collective call as the schedules see it, and who moves which block to whom. Trivially copyable: given by value to
// kernels and kept by value in a stream's queue.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"
#include "collectives/algorithm.hpp"
#include "numerics/dispatch_type.hpp"
#include "protocol/layout.hpp"

namespace pkcomm {

struct Operation {
  Collective collective = Collective::kBarrier;
  pkcommDataType_t dtype = pkcommUint8;
  numerics::ReduceKind kind = numerics::ReduceKind::kSum;
  int root = 0;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::uint64_t count = 0;  // as the caller gave it; for messages
  std::uint64_t block = 0;  // bytes that one rank gives one other; the whole buffer where there are no blocks
  std::uint64_t block_stride = 0;  // bytes from one block to the next
  std::uint64_t chunk = 0;         // bytes of one round in staging, a multiple of 64
  std::uint64_t send_offset = 0;   // zero-copy: the buffers within every rank's part
  std::uint64_t recv_offset = 0;
  bool zero_copy = false;
  std::uint64_t fingerprint = 0;    // 16 bits over everything in which ranks must agree in this call
  std::uint64_t scalar = 0;         // pre-multiplier, accumulator bits
  const void* scalar_at = nullptr;  // one element that holds it when the operation runs; null: `scalar` does
};

/// This rank's pre-multiplier, accumulator bits. Read when the operation runs, on whatever runs it.
PK_HD PK_COLD inline std::uint64_t own_scalar(const Operation& op) {
  return op.scalar_at == nullptr ? op.scalar : numerics::scalar_word(op.dtype, op.scalar_at);
}

/// What a rank keeps of the call, for its peers' messages. `word`: of the operation, 0 for those without a number.
PK_HD inline CallRecord record_of(const Operation& op, std::uint64_t word) {
  return {word,
          op.count,
          static_cast<std::int32_t>(op.collective),
          static_cast<std::int32_t>(op.dtype),
          static_cast<std::int32_t>(op.kind),
          op.root,
          op.fingerprint};
}

/// Which blocks go from whom to whom, and where they lie at either end.
struct Pattern {
  static constexpr bool kSameForAll = false;  // known when compiled
  const Operation& op;

  PK_HD bool moves(int from, int to) const {
    switch (op.collective) {
      case Collective::kBroadcast:
      case Collective::kScatter:
        return from == op.root;
      case Collective::kGather:
      case Collective::kReduce:
        return to == op.root;
      default:
        return true;
    }
  }
  /// Whether the rank has a block for anybody, or gets one from anybody.
  PK_HD bool sends(int rank) const {
    return (op.collective != Collective::kBroadcast && op.collective != Collective::kScatter) ||
           rank == op.root;
  }
  PK_HD bool receives(int rank) const {
    return (op.collective != Collective::kGather && op.collective != Collective::kReduce) || rank == op.root;
  }
  /// Whether every rank receives from every other.
  PK_HD bool all_hear_all() const {
    return op.collective == Collective::kAllReduce || op.collective == Collective::kAllGather ||
           op.collective == Collective::kReduceScatter || op.collective == Collective::kAllToAll;
  }
  /// Offset in the sender's buffer of the block for rank `to`.
  PK_HD std::uint64_t send_at(int to) const {
    const bool blocks = op.collective == Collective::kAllToAll || op.collective == Collective::kScatter ||
                        op.collective == Collective::kReduceScatter;
    return blocks ? static_cast<std::uint64_t>(to) * op.block_stride : 0;
  }
  /// Offset in the receiver's buffer of the block from rank `from`.
  PK_HD std::uint64_t recv_at(int from) const {
    const bool blocks = op.collective == Collective::kAllGather || op.collective == Collective::kAllToAll ||
                        op.collective == Collective::kGather;
    return blocks ? static_cast<std::uint64_t>(from) * op.block_stride : 0;
  }
  PK_HD const std::byte* source(int to) const { return op.send + send_at(to); }
  PK_HD std::byte* target(int from) const { return op.recv + recv_at(from); }
};

/// The pattern of all_reduce and all_gather, where every rank has one block for everybody: known when compiled, as these
/// are the calls where instructions count.
struct FullExchange {
  static constexpr bool kSameForAll = true;
  const Operation& op;

  PK_HD static bool serves(Collective collective) {
    return collective == Collective::kAllReduce || collective == Collective::kAllGather;
  }
  PK_HD constexpr bool moves(int, int) const { return true; }
  PK_HD constexpr bool all_hear_all() const { return true; }
  PK_HD constexpr bool sends(int) const { return true; }
  PK_HD constexpr bool receives(int) const { return true; }
  PK_HD constexpr std::uint64_t send_at(int) const { return 0; }
  PK_HD std::uint64_t recv_at(int from) const { return static_cast<std::uint64_t>(from) * op.block_stride; }
  PK_HD const std::byte* source(int) const { return op.send; }
  PK_HD std::byte* target(int from) const { return op.recv + recv_at(from); }
};

/// A part of a block.
struct Part {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// What CTA `cta` of `ctas` does of `bytes` bytes: contiguous, a multiple of 64 bytes but for the last, perhaps empty.
PK_HD inline Part column_of(std::uint64_t bytes, int cta, int ctas) {
  const std::uint64_t each = ((bytes + std::uint64_t(ctas) - 1) / std::uint64_t(ctas) + 63) / 64 * 64;
  const std::uint64_t begin = each * std::uint64_t(cta) < bytes ? each * std::uint64_t(cta) : bytes;
  return {begin, begin + each < bytes ? each : bytes - begin};
}

/// The slice of a buffer of `bytes` bytes that rank `owner` reduces in two-phase algorithms; perhaps empty.
PK_HD inline Part slice_of(std::uint64_t bytes, int owner, int nranks) {
  return column_of(bytes, owner, nranks);
}

/// The part of `inner`, given within an outer part's full size, that the outer part really has.
PK_HD inline Part clip(std::uint64_t begin, std::uint64_t bytes, std::uint64_t available) {
  if (begin >= available) return {begin, 0};
  return {begin, begin + bytes < available ? bytes : available - begin};
}

/// How the 8 bytes of packet `index` of a block are read and written. Index: as wide as `bytes` needs, since a GPU computes
/// with 32 bits. Any block: any alignment; short at the end of the block, the rest zero.
struct AnyWords {
  template <class Index>
  PK_HD static std::uint64_t load(const std::byte* block, Index index, Index bytes) {
    const std::byte* const from = block + static_cast<std::uint64_t>(index) * 8;
    std::uint64_t word = 0;
    if (bytes - index * 8 >= 8) {
      __builtin_memcpy(&word, from, 8);
    } else {
      for (Index i = 0; i < bytes - index * 8; ++i) {
        word |= std::uint64_t(static_cast<unsigned char>(from[i])) << (8 * i);
      }
    }
    return word;
  }
  template <class Index>
  PK_HD static void store(std::byte* block, Index index, Index bytes, std::uint64_t word) {
    std::byte* const to = block + static_cast<std::uint64_t>(index) * 8;
    if (bytes - index * 8 >= 8) {
      __builtin_memcpy(to, &word, 8);
    } else {
      for (Index i = 0; i < bytes - index * 8; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
    }
  }
};

/// Blocks of whole words, 8-byte aligned: one access each. A GPU takes any other byte after byte.
struct WholeWords {
  PK_HD static bool serve(const Operation& op) {
    const auto address =
        reinterpret_cast<std::uintptr_t>(op.send) | reinterpret_cast<std::uintptr_t>(op.recv);
    return (address | op.block | op.block_stride) % 8 == 0;
  }
  template <class Index>
  PK_HD static std::uint64_t load(const std::byte* block, Index index, Index) {
    std::uint64_t word;
    __builtin_memcpy(&word, __builtin_assume_aligned(block + static_cast<std::uint64_t>(index) * 8, 8), 8);
    return word;
  }
  template <class Index>
  PK_HD static void store(std::byte* block, Index index, Index, std::uint64_t word) {
    __builtin_memcpy(__builtin_assume_aligned(block + static_cast<std::uint64_t>(index) * 8, 8), &word, 8);
  }
};

}  // namespace pkcomm
