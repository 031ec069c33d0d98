// The choice: the cheapest legal offer that the user's lists allow; where they allow none, they give way one by one.
#include "dispatch/plan.hpp"

#include "base/text.hpp"
#include "dispatch/overrides.hpp"
#include "dispatch/pricing.hpp"
#include "dispatch/tuning.hpp"

namespace pkcomm::dispatch {
namespace {

/// The cheapest offer so far.
struct Best {
  bool found = false;
  std::uint64_t cost = 0;
  Plan plan;

  // Strictly cheaper: of equal offers the earlier in the list of algorithms stays.
  void take(const Offer& offer) {
    if (found && offer.cost >= cost) return;
    found = true;
    cost = offer.cost;
    plan = offer.plan;
  }
};

Status nothing_legal(const Request& request) {
  return {pkcommUnsupported, "no algorithm can do " + std::string(name(request.collective)) + " of " +
                                 format_bytes(request.bytes) + " bytes with " +
                                 std::to_string(request.nranks) +
                                 " ranks here; pkcommExplain says why for each"};
}

}  // namespace

Result<Decision> plan(const Request& request, const Capabilities& capabilities, const Tuning& tuning,
                      const Overrides& overrides) {
  Best wanted;
  Best by_algorithm;  // as PKCOMM_ALGORITHM wants it
  Best by_mechanism;  // as PKCOMM_MECHANISM wants it
  Best any;
  for (const Descriptor& d : descriptors()) {
    if ((d.collectives & bit(request.collective)) == 0) continue;
    const bool algorithm_allowed = overrides.allows(request.collective, d.algorithm);
    const bool mechanism_allowed = overrides.allows(request.collective, d.mechanism);
    const Offer offer = make_offer(d, request, capabilities, tuning, overrides);
    if (offer.verdict != Verdict::kLegal) continue;
    if (algorithm_allowed && mechanism_allowed) {
      wanted.take(offer);
      continue;
    }
    if (algorithm_allowed) by_algorithm.take(offer);
    if (mechanism_allowed) by_mechanism.take(offer);
    if (!d.forced_only) any.take(offer);
  }
  if (wanted.found) return Decision{.plan = wanted.plan};
  if (by_algorithm.found) return Decision{.plan = by_algorithm.plan, .mechanism_ignored = true};
  if (by_mechanism.found) return Decision{.plan = by_mechanism.plan, .algorithm_ignored = true};
  if (any.found) return Decision{.plan = any.plan, .algorithm_ignored = true, .mechanism_ignored = true};
  return nothing_legal(request);
}

}  // namespace pkcomm::dispatch
