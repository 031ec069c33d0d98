// One algorithm's offer for one call: whether it is legal, and at what price. plan() takes the cheapest offer, explain()
// shows them all; that both ask here is what makes the explanation true.
#pragma once

#include <cstdint>

#include "collectives/descriptors.hpp"
#include "dispatch/overrides.hpp"
#include "dispatch/plan.hpp"
#include "dispatch/tuning.hpp"

namespace pkcomm::dispatch {

enum class Verdict : std::uint8_t {
  kLegal,
  kOtherCollectives,  ///< it does not do this collective
  kNotAskedFor,       ///< forced-only, and no allow list names it
  kBlockTooLong,      ///< a block does not fit into the packet area
  kNoStaging,         ///< neither windows nor staging
  kNoWindows,         ///< works between windows alone
  kNotHere,
  kNoMulticast,
  kSwitchArithmetic,  ///< the switch does not reduce this type by this operation
  kOrder,             ///< a deterministic result was asked for
  kNoCurve,           ///< the tuning table says nothing about it
};

struct Offer {
  Verdict verdict = Verdict::kOtherCollectives;
  Plan plan;
  std::uint64_t cost = 0;        ///< predicted time plus the price of the CTAs, ns
  const Curve* curve = nullptr;  ///< what it was priced by; lives in the tuning
};

/// The better of its two paths where both are legal. Overrides count as far as they name forced-only algorithms and set
/// the chunk; which algorithms they allow is the caller's matter.
Offer make_offer(const Descriptor& descriptor, const Request& request, const Capabilities& capabilities,
                 const Tuning& tuning, const Overrides& overrides) noexcept;

}  // namespace pkcomm::dispatch
