// The names of what a collective is, how it is scheduled and how its bytes move. Values are indices: the list that says
// what each algorithm can do is descriptors.cpp, in the order of Algorithm.
#pragma once

#include <cstdint>

#include "pkcomm/pkcomm.h"

namespace pkcomm {

/// The values are pkcommCollective_t's.
enum class Collective : std::uint8_t {
  kAllReduce = pkcommCollAllReduce,
  kReduce = pkcommCollReduce,
  kBroadcast = pkcommCollBroadcast,
  kAllGather = pkcommCollAllGather,
  kReduceScatter = pkcommCollReduceScatter,
  kAllToAll = pkcommCollAllToAll,
  kAllToAllV = pkcommCollAllToAllV,
  kGather = pkcommCollGather,
  kScatter = pkcommCollScatter,
  kSendRecv = pkcommCollSendRecv,
  kBarrier = pkcommCollBarrier,
};
inline constexpr int kCollectives = PKCOMM_COLLECTIVES;

/// The schedule. Where two cost the same, the earlier one is taken.
enum class Algorithm : std::uint8_t {
  kOneShotLl,
  kTwoShotLl,
  kDirectLdst,
  kDirectTma,
  kCopyEngine,
  kMultimem,
  kMultimemEmulated,
  kPairwise,
};
inline constexpr int kAlgorithms = 8;

/// How the bytes move.
enum class Mechanism : std::uint8_t { kRegister, kTma, kCopyEngine, kMultimem, kPeerLoop };
inline constexpr int kMechanisms = 5;

constexpr int index(Collective collective) noexcept { return static_cast<int>(collective); }
constexpr int index(Algorithm algorithm) noexcept { return static_cast<int>(algorithm); }
constexpr int index(Mechanism mechanism) noexcept { return static_cast<int>(mechanism); }

}  // namespace pkcomm
