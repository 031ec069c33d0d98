// The list itself, and arithmetic on sizes that follows from the schedules of the algorithms' own files.
#include "collectives/descriptors.hpp"

#include <array>
#include <initializer_list>

namespace pkcomm {
namespace {

using enum Collective;

constexpr CollectiveMask mask(std::initializer_list<Collective> collectives) {
  CollectiveMask result = 0;
  for (const Collective collective : collectives) result |= bit(collective);
  return result;
}

constexpr CollectiveMask kMovesOrReduces =
    mask({kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kAllToAll, kGather, kScatter});
constexpr CollectiveMask kSwitched = mask({kAllReduce, kReduceScatter, kAllGather, kBroadcast});

constexpr std::array<Descriptor, kAlgorithms> kDescriptors = {{
    {.algorithm = Algorithm::kOneShotLl,
     .mechanism = Mechanism::kRegister,
     .name = "one_shot_ll",
     .collectives = kMovesOrReduces | bit(kBarrier),
     .route = Route::kPackets},
    {.algorithm = Algorithm::kTwoShotLl,
     .mechanism = Mechanism::kRegister,
     .name = "two_shot_ll",
     .collectives = mask({kAllReduce, kReduce, kBroadcast}),
     .route = Route::kPackets},
    {.algorithm = Algorithm::kDirectLdst,
     .mechanism = Mechanism::kRegister,
     .name = "direct_ldst",
     .collectives = kMovesOrReduces,
     .route = Route::kEither},
    {.algorithm = Algorithm::kDirectTma,
     .mechanism = Mechanism::kTma,
     .name = "direct_tma",
     .collectives = kMovesOrReduces,
     .route = Route::kEither},
    {.algorithm = Algorithm::kCopyEngine,
     .mechanism = Mechanism::kCopyEngine,
     .name = "copy_engine",
     .collectives = kMovesOrReduces,
     .route = Route::kEither,
     .spares_ctas = true},
    {.algorithm = Algorithm::kMultimem,
     .mechanism = Mechanism::kMultimem,
     .name = "multimem",
     .collectives = kSwitched,
     .route = Route::kWindows,
     .switch_arithmetic = true,
     .needs_multicast = true},
    {.algorithm = Algorithm::kMultimemEmulated,
     .mechanism = Mechanism::kPeerLoop,
     .name = "multimem_emulated",
     .collectives = kSwitched,
     .route = Route::kWindows,
     .switch_arithmetic = true,
     .forced_only = true},
    {.algorithm = Algorithm::kPairwise,
     .mechanism = Mechanism::kRegister,
     .name = "pairwise",
     .collectives = mask({kAllToAllV, kSendRecv}),
     .route = Route::kRing},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < kDescriptors.size(); ++i) {
        if (index(kDescriptors[i].algorithm) != static_cast<int>(i)) return false;
      }
      return true;
    }(),
    "kDescriptors has the order of Algorithm");

constexpr std::array<std::string_view, kCollectives> kCollectiveNames = {
    "all_reduce",   "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
    "all_to_all_v", "gather", "scatter",   "send_recv",  "barrier"};
constexpr std::array<std::string_view, kMechanisms> kMechanismNames = {"register", "tma", "copy engine",
                                                                       "multimem", "peer loop"};

constexpr char fold(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '-' || c == ' ' ? '_' : c;
}

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (fold(a[i]) != fold(b[i])) return false;
  }
  return true;
}

template <class Enum>
std::optional<Enum> find(std::string_view wanted, int count) {
  for (int i = 0; i < count; ++i) {
    if (same_name(wanted, name(static_cast<Enum>(i)))) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

constexpr std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// A slice of a two-phase algorithm, slice_of() of operation.hpp: a multiple of 64 bytes.
constexpr std::size_t slice_bytes(std::size_t bytes, int nranks) {
  const auto ranks = static_cast<std::size_t>(nranks);
  const std::size_t slice = bytes / ranks + (bytes % ranks != 0 ? 1 : 0);
  return slice + (64 - slice % 64) % 64;
}

}  // namespace

std::span<const Descriptor> descriptors() noexcept { return kDescriptors; }
const Descriptor& descriptor(Algorithm algorithm) noexcept {
  return kDescriptors[static_cast<std::size_t>(index(algorithm))];
}

std::string_view name(Collective collective) noexcept {
  return kCollectiveNames[static_cast<std::size_t>(index(collective))];
}
std::string_view name(Algorithm algorithm) noexcept { return descriptor(algorithm).name; }
std::string_view name(Mechanism mechanism) noexcept {
  return kMechanismNames[static_cast<std::size_t>(index(mechanism))];
}

std::optional<Collective> find_collective(std::string_view wanted) noexcept {
  return find<Collective>(wanted, kCollectives);
}
std::optional<Algorithm> find_algorithm(std::string_view wanted) noexcept {
  return find<Algorithm>(wanted, kAlgorithms);
}
std::optional<Mechanism> find_mechanism(std::string_view wanted) noexcept {
  return find<Mechanism>(wanted, kMechanisms);
}

std::size_t block_bytes(Collective collective, std::size_t bytes, int nranks) noexcept {
  return sized_by_blocks(collective) ? bytes / static_cast<std::size_t>(nranks) : bytes;
}

std::size_t pair_bytes(Algorithm algorithm, Collective collective, std::size_t bytes, int nranks) noexcept {
  if (!has_common_size(collective)) return 0;
  if (sized_by_blocks(collective)) return block_bytes(collective, bytes, nranks);
  const bool one_phase = collective == kBroadcast && algorithm != Algorithm::kTwoShotLl;
  return one_phase || algorithm == Algorithm::kOneShotLl ? bytes : slice_bytes(bytes, nranks);
}

std::uint64_t wire_bytes(Algorithm algorithm, Collective collective, std::size_t bytes, int nranks,
                         bool zero_copy) noexcept {
  if (!has_common_size(collective)) return 0;
  const auto peers = static_cast<std::uint64_t>(nranks - 1);
  const std::uint64_t whole = bytes;
  // What a rank exchanges where each peer has another part; what it exchanges where each peer has all.
  const auto shares = [&] { return saturating_multiply(peers, block_bytes(kAllGather, bytes, nranks)); };
  const auto copies = [&] { return saturating_multiply(peers, whole); };
  switch (algorithm) {
    case Algorithm::kOneShotLl:
      return saturating_multiply(2, sized_by_blocks(collective) ? shares() : copies());
    case Algorithm::kTwoShotLl:
      return saturating_multiply(4, shares());
    case Algorithm::kDirectLdst:
    case Algorithm::kDirectTma:
    case Algorithm::kCopyEngine:
      if (sized_by_blocks(collective)) return shares();
      // The root serves everybody, or (reduce between windows) reads from everybody.
      if (collective == kBroadcast || (collective == kReduce && zero_copy)) return copies();
      return saturating_multiply(2, shares());
    case Algorithm::kMultimem:
      // Each rank's memory is read once by the switch, or written once; all_reduce writes its slice back as well.
      return collective == kAllReduce ? whole + whole / static_cast<std::uint64_t>(nranks) : whole;
    case Algorithm::kMultimemEmulated:
      if (collective == kAllReduce) return saturating_multiply(2, shares());
      return collective == kBroadcast ? copies() : shares();
    case Algorithm::kPairwise:
      return 0;
  }
  return 0;
}

WindowNeeds window_needs(Collective collective) noexcept {
  switch (collective) {
    case kAllReduce:
      return {.send = true, .recv = true};
    case kReduceScatter:
    case kReduce:
    case kGather:
      return {.send = true};
    case kBroadcast:
    case kAllGather:
    case kAllToAll:
    case kScatter:
      return {.recv = true};
    case kAllToAllV:
    case kSendRecv:
    case kBarrier:
      break;
  }
  return {};
}

bool switch_reduces(pkcommDataType_t dtype, numerics::ReduceKind kind) noexcept {
  using enum numerics::ReduceKind;
  switch (dtype) {
    case pkcommFloat16:
    case pkcommBfloat16:
    case pkcommInt32:
    case pkcommUint32:
    case pkcommInt64:
    case pkcommUint64:
      return kind == kSum || kind == kMin || kind == kMax;
    case pkcommFloat32:
    case pkcommFloat64:
      return kind == kSum;
    case pkcommInt8:
    case pkcommUint8:
    case pkcommFloat8e4m3:
    case pkcommFloat8e5m2:
      break;
  }
  return false;
}

}  // namespace pkcomm
