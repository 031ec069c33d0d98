// Legality first, from the descriptor and the capabilities, then the lines of the curve. All in integers, no division by
// anything but sizes of groups and grids: it runs at every call.
#include "dispatch/pricing.hpp"

#include <algorithm>

namespace pkcomm::dispatch {
namespace {

__extension__ using Wide = unsigned __int128;

// Beyond any time: keeps sums of a few of them within 64 bits.
constexpr std::uint64_t kForever = std::uint64_t{1} << 56;

constexpr std::uint64_t bounded(Wide ns) { return ns < kForever ? static_cast<std::uint64_t>(ns) : kForever; }
constexpr std::uint64_t scale(std::uint64_t value, Q32 fraction) {
  return bounded(Wide{value} * fraction >> 32);
}

bool has_windows(const Request& request) {
  const WindowNeeds needs = window_needs(request.collective);
  return (!needs.send || request.send_window) && (!needs.recv || request.recv_window);
}

std::size_t staging_of(const Descriptor& d, const Capabilities& capabilities) {
  return d.mechanism == Mechanism::kCopyEngine ? capabilities.engine_bytes : capabilities.slot_bytes;
}

// What stands against the algorithm whatever its path.
Verdict judge(const Descriptor& d, const Request& request, const Capabilities& capabilities,
              const Overrides& overrides) {
  if ((d.collectives & bit(request.collective)) == 0) return Verdict::kOtherCollectives;
  if ((capabilities.algorithms >> index(d.algorithm) & 1) == 0) return Verdict::kNotHere;
  if (d.forced_only && !overrides.asks_for(request.collective, d.algorithm)) return Verdict::kNotAskedFor;
  if (d.needs_multicast && !capabilities.multicast) return Verdict::kNoMulticast;
  if (d.switch_arithmetic && reduces(request.collective)) {
    if (!switch_reduces(request.dtype, request.kind)) return Verdict::kSwitchArithmetic;
    if (d.needs_multicast && request.deterministic) return Verdict::kOrder;
  }
  switch (d.route) {
    case Route::kPackets: {
      const std::size_t block = pair_bytes(d.algorithm, request.collective, request.bytes, request.nranks);
      return block > capabilities.ll_capacity_bytes ? Verdict::kBlockTooLong : Verdict::kLegal;
    }
    case Route::kEither:
      return staging_of(d, capabilities) == 0 && !has_windows(request) ? Verdict::kNoStaging
                                                                       : Verdict::kLegal;
    case Route::kWindows:
      return has_windows(request) ? Verdict::kLegal : Verdict::kNoWindows;
    case Route::kRing:
      break;
  }
  return Verdict::kLegal;
}

/// CTAs that share staging; the copy engine alone counts as one.
std::uint64_t columns(int ctas) { return static_cast<std::uint64_t>(std::max(ctas, 1)); }

// Two sub-slots at least: one is written while the other is read.
std::uint64_t chunk_of(std::uint64_t wanted, std::uint64_t slot_bytes, int ctas) {
  const std::uint64_t most = slot_bytes / columns(ctas) / 2;
  const std::uint64_t chunk = wanted == 0 ? most : std::min(wanted, most);
  if (chunk >= 256) return chunk / 256 * 256;
  return std::max<std::uint64_t>(chunk / 8 * 8, 8);
}

/// A call on one path, before a line is chosen.
struct Call {
  const Descriptor& descriptor;
  const Request& request;
  const Curve& curve;
  std::uint64_t wire = 0;        // bytes that the price is for
  std::uint64_t slot_bytes = 0;  // 0: it does not go through rounds
  std::uint64_t pair = 0;        // bytes of it that pass one slot
  std::uint64_t wanted_chunk = 0;
};

Plan price(const Call& call, const Line& line) {
  Plan plan;
  plan.algorithm = call.descriptor.algorithm;
  plan.mechanism = call.descriptor.mechanism;
  plan.threads = call.curve.threads;
  std::uint64_t moving = scale(call.wire, line.ns_per_byte);
  if (line.ctas > 0 || !call.descriptor.spares_ctas) {
    const int most = std::max(call.request.max_ctas, 1);
    plan.ctas = std::min(std::max({line.ctas, call.request.min_ctas, 1}), most);
    // Fewer CTAs than measured are slower in proportion; more are not taken to be faster.
    if (line.ctas > most)
      moving = bounded(Wide{moving} * static_cast<unsigned>(line.ctas)) / static_cast<unsigned>(most);
  } else {
    plan.ctas = 0;
  }
  std::uint64_t fixed = line.alpha_ns;
  if (call.request.nranks > call.curve.nranks) {
    fixed += call.curve.per_peer_ns * static_cast<unsigned>(call.request.nranks - call.curve.nranks);
  }
  if (call.slot_bytes != 0) {
    plan.chunk_bytes = chunk_of(call.wanted_chunk, call.slot_bytes, plan.ctas);
    const std::uint64_t round = plan.chunk_bytes * columns(plan.ctas);
    if (call.curve.round_ns != 0 && call.pair > round) {
      fixed += bounded(Wide{(call.pair - 1) / round} * call.curve.round_ns);
    }
  }
  plan.predicted_ns = std::min(fixed + moving, kForever);
  return plan;
}

void consider(Offer& best, const Call& call, Q32 cta_price, bool zero_copy) {
  const std::vector<Line>& lines = call.curve.lines;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto holds = [&](std::size_t at) { return lines[at].from_bytes <= call.request.bytes; };
    const bool superseded = i + 1 < lines.size() && lines[i + 1].ctas == lines[i].ctas && holds(i + 1);
    if (!holds(i) || superseded) continue;
    Plan plan = price(call, lines[i]);
    plan.zero_copy = zero_copy;
    const std::uint64_t cost =
        plan.predicted_ns + scale(plan.predicted_ns * static_cast<unsigned>(plan.ctas), cta_price);
    if (best.curve != nullptr && cost >= best.cost) continue;
    best.plan = plan;
    best.cost = cost;
    best.curve = &call.curve;
  }
}

}  // namespace

Offer make_offer(const Descriptor& d, const Request& request, const Capabilities& capabilities,
                 const Tuning& tuning, const Overrides& overrides) noexcept {
  Offer offer;
  offer.plan.algorithm = d.algorithm;
  offer.plan.mechanism = d.mechanism;
  offer.verdict = judge(d, request, capabilities, overrides);
  if (offer.verdict != Verdict::kLegal) return offer;

  const auto consider_path = [&](Path path) {
    const Curve* curve = tuning.find(request.collective, d.algorithm, path, request.nranks);
    if (curve == nullptr) return;
    const bool zero_copy = path == Path::kZeroCopy;
    Call call{.descriptor = d, .request = request, .curve = *curve};
    call.wire = wire_bytes(d.algorithm, request.collective, request.bytes, request.nranks, zero_copy);
    if (d.route == Route::kEither && !zero_copy) {
      call.slot_bytes = staging_of(d, capabilities);
      call.pair = pair_bytes(d.algorithm, request.collective, request.bytes, request.nranks);
      call.wanted_chunk = overrides.chunk_bytes() != 0 ? overrides.chunk_bytes() : curve->chunk_bytes;
    }
    consider(offer, call, tuning.cta_price(), zero_copy);
  };
  if (d.route != Route::kWindows && (d.route != Route::kEither || staging_of(d, capabilities) != 0)) {
    consider_path(Path::kStaged);
  }
  if ((d.route == Route::kEither || d.route == Route::kWindows) && has_windows(request)) {
    consider_path(Path::kZeroCopy);
  }
  if (offer.curve == nullptr) offer.verdict = Verdict::kNoCurve;
  return offer;
}

}  // namespace pkcomm::dispatch
