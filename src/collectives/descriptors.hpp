// The one list of algorithms: what each is called, which collectives it does, what it needs and how many bytes it moves.
// The dispatcher, the environment's parser, the tuning table's parser and every printed table read it; nothing else
// knows an algorithm by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "collectives/algorithm.hpp"
#include "numerics/dispatch_type.hpp"

namespace pkcomm {

/// A set of collectives, a bit each.
using CollectiveMask = std::uint32_t;
constexpr CollectiveMask bit(Collective collective) noexcept {
  return CollectiveMask{1} << index(collective);
}

/// How an algorithm comes by the peers' bytes, hence what bounds it.
enum class Route : std::uint8_t {
  kPackets,  ///< packets of payload and tag: the largest block for one peer fits in the packet area
  kEither,   ///< rounds through raw staging; without staging where the buffers it needs are windows
  kWindows,  ///< between windows alone
  kRing,     ///< a ring and credits for each ordered pair
};

struct Descriptor {
  Algorithm algorithm;
  Mechanism mechanism;
  std::string_view name;
  CollectiveMask collectives;
  Route route;
  /// Reductions happen within the switch, or are made to look so: only its types and operations.
  bool switch_arithmetic = false;
  /// The machine must offer multicast objects. Reductions then come in the switch's order, not in that of the ranks.
  bool needs_multicast = false;
  /// Never chosen unless the environment allows it by name.
  bool forced_only = false;
  /// May run without CTAs of its own, so that bounds on CTAs do not concern it.
  bool spares_ctas = false;
};

/// In the order of Algorithm.
std::span<const Descriptor> descriptors() noexcept;
const Descriptor& descriptor(Algorithm algorithm) noexcept;

std::string_view name(Collective collective) noexcept;  ///< "all_reduce"
std::string_view name(Algorithm algorithm) noexcept;    ///< "one_shot_ll"
std::string_view name(Mechanism mechanism) noexcept;    ///< "copy engine"

/// By name, in any case; '-' and ' ' are taken for '_'.
std::optional<Collective> find_collective(std::string_view name) noexcept;
std::optional<Algorithm> find_algorithm(std::string_view name) noexcept;
std::optional<Mechanism> find_mechanism(std::string_view name) noexcept;

/// Whether elements are combined.
constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter;
}

/// The size of a call as nccl-tests counts it: the whole buffer of a rank for all_reduce, reduce and broadcast, all ranks'
/// blocks together for the others, of which one block is `bytes / nranks`.
constexpr bool sized_by_blocks(Collective collective) noexcept {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll || collective == Collective::kGather ||
         collective == Collective::kScatter;
}

/// Whether a call has a size that all ranks know; the others are priced as if they moved nothing.
constexpr bool has_common_size(Collective collective) noexcept {
  return collective != Collective::kBarrier && collective != Collective::kAllToAllV &&
         collective != Collective::kSendRecv;
}

/// Bytes that one rank has for one other: a block, or the whole buffer.
std::size_t block_bytes(Collective collective, std::size_t bytes, int nranks) noexcept;

/// The largest block, in bytes of payload, that one rank stages for one other in one phase of `algorithm`.
std::size_t pair_bytes(Algorithm algorithm, Collective collective, std::size_t bytes, int nranks) noexcept;

/// Bytes through the busiest rank's port, in the direction that carries more, tags of packets included; saturates.
std::uint64_t wire_bytes(Algorithm algorithm, Collective collective, std::size_t bytes, int nranks,
                         bool zero_copy) noexcept;

/// Which buffers must be windows for an algorithm to do without staging. The direct algorithms write into the receivers'
/// windows or read from the senders', see direct_zero_copy.hpp; so does the switch.
struct WindowNeeds {
  bool send = false;
  bool recv = false;
};
WindowNeeds window_needs(Collective collective) noexcept;

/// Whether the switch reduces this: what multimem.ld_reduce of the PTX ISA offers, in the arithmetic of pkcomm.h.
bool switch_reduces(pkcommDataType_t dtype, numerics::ReduceKind kind) noexcept;

}  // namespace pkcomm
