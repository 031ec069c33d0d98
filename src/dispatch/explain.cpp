// The reasons in words, as a table and as the structure of the C API.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "base/text.hpp"
#include "dispatch/overrides.hpp"
#include "dispatch/plan.hpp"
#include "dispatch/pricing.hpp"
#include "dispatch/tuning.hpp"

namespace pkcomm::dispatch {
namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char line[256];
  std::snprintf(line, sizeof(line), pattern, values...);
  return line;
}

// Tenths of a microsecond by integers: a locale may turn a decimal point into a comma.
std::string microseconds(std::uint64_t ns) {
  const std::uint64_t tenths = (ns + 50) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string missing_windows(Collective collective) {
  const WindowNeeds needs = window_needs(collective);
  if (needs.send && needs.recv) return "send and recv must be windows";
  return needs.send ? "send must be a window" : "recv must be a window";
}

std::string why_illegal(const Descriptor& d, Verdict verdict, const Request& request,
                        const Capabilities& capabilities) {
  switch (verdict) {
    case Verdict::kLegal:
      return {};
    case Verdict::kOtherCollectives:
      return "does not do " + std::string(name(request.collective));
    case Verdict::kNotAskedFor:
      return "only where PKCOMM_ALGORITHM or PKCOMM_MECHANISM asks for it";
    case Verdict::kBlockTooLong:
      return format_bytes(pair_bytes(d.algorithm, request.collective, request.bytes, request.nranks)) +
             " for one rank, packets hold " + format_bytes(capabilities.ll_capacity_bytes);
    case Verdict::kNoStaging:
      return "no staging, and " + missing_windows(request.collective);
    case Verdict::kNoWindows:
      return missing_windows(request.collective);
    case Verdict::kNotHere:
      return "the " + std::string(name(capabilities.platform)) + " platform does not run it";
    case Verdict::kNoMulticast:
      return "no multicast" +
             (capabilities.multicast_reason.empty() ? "" : ": " + capabilities.multicast_reason);
    case Verdict::kSwitchArithmetic:
      return "the switch cannot do " + std::string(numerics::name(request.kind)) + " of " +
             numerics::name(request.dtype);
    case Verdict::kOrder:
      return "deterministic: the switch reduces in an order of its own";
    case Verdict::kNoCurve:
      return "the tuning table says nothing about it";
  }
  return {};
}

std::string why_not_chosen(const Offer& offer, const Offer& chosen, const Request& request,
                           const Overrides& overrides) {
  if (!overrides.allows(request.collective, offer.plan.algorithm)) return "not allowed by PKCOMM_ALGORITHM";
  if (!overrides.allows(request.collective, offer.plan.mechanism)) return "not allowed by PKCOMM_MECHANISM";
  const std::uint64_t here = offer.plan.predicted_ns, best = chosen.plan.predicted_ns;
  if (here > best) return microseconds(here - best) + " us slower";
  if (offer.cost == chosen.cost) return "equal; the earlier in this list is taken";
  return microseconds(best - here) + " us faster, not worth " + std::to_string(offer.plan.ctas) +
         " CTAs to " + std::to_string(chosen.plan.ctas);
}

std::string why_chosen(const Offer& offer, const Decision& decision, bool restricted) {
  std::string text = "chosen: the cheapest";
  if (restricted && !decision.algorithm_ignored && !decision.mechanism_ignored) text += " that is allowed";
  if (offer.curve->provisional) text += " (reckoned, not measured)";
  return text;
}

std::string note_of(const Decision& decision, const Tuning& tuning) {
  std::vector<std::string> notes;
  if (decision.algorithm_ignored)
    notes.push_back("PKCOMM_ALGORITHM allows nothing that is legal here, and is ignored");
  if (decision.mechanism_ignored)
    notes.push_back("PKCOMM_MECHANISM allows nothing that is legal here, and is ignored");
  if (!tuning.note().empty()) notes.push_back(tuning.note());
  const std::vector<std::string_view> parts(notes.begin(), notes.end());
  return join(parts, "; ");
}

// Nothing moves, so nothing is chosen; the v-forms and the barrier always run.
bool has_nothing_to_do(const Request& request) {
  return request.bytes == 0 && has_common_size(request.collective);
}

std::string windows_text(const Request& request) {
  if (request.send_window && request.recv_window) return "send and recv are windows";
  if (request.send_window) return "send is a window";
  return request.recv_window ? "recv is a window" : "no windows";
}

std::string headline(const Explanation& explanation) {
  const Request& request = explanation.request;
  std::string text = std::string(name(request.collective));
  if (has_common_size(request.collective)) text += ", " + format_bytes(request.bytes) + " bytes";
  if (reduces(request.collective)) {
    text += std::string(" of ") + numerics::name(request.dtype) + ", " + numerics::name(request.kind);
  }
  return text + ", " + std::to_string(request.nranks) + " ranks, " + windows_text(request) + "; table " +
         explanation.tuning;
}

const char* path_text(const Candidate& candidate) {
  const Route route = descriptor(candidate.plan.algorithm).route;
  if (!candidate.legal) return "-";
  if (route == Route::kPackets) return "packets";
  return candidate.plan.zero_copy ? "zero-copy" : "staged";
}

}  // namespace

Explanation explain(const Request& request, const Capabilities& capabilities, const Tuning& tuning,
                    const Overrides& overrides) {
  Explanation explanation;
  explanation.request = request;
  explanation.tuning = tuning.name();
  std::vector<Offer> offers;
  for (const Descriptor& d : descriptors()) {
    offers.push_back(make_offer(d, request, capabilities, tuning, overrides));
  }
  const Result<Decision> decision = plan(request, capabilities, tuning, overrides);
  const bool idle = has_nothing_to_do(request);
  if (decision.ok()) explanation.note = note_of(decision.value(), tuning);
  if (idle) explanation.note = "nothing to do: no bytes";
  if (decision.ok() && !idle) explanation.chosen = index(decision.value().plan.algorithm);

  const auto allowed = [&](const Descriptor& d) {
    return (d.collectives & bit(request.collective)) == 0 ||
           (overrides.allows(request.collective, d.algorithm) &&
            overrides.allows(request.collective, d.mechanism));
  };
  const bool restricted = !std::all_of(descriptors().begin(), descriptors().end(), allowed);
  for (const Descriptor& d : descriptors()) {
    const Offer& offer = offers[static_cast<std::size_t>(index(d.algorithm))];
    Candidate candidate{.plan = offer.plan, .legal = offer.verdict == Verdict::kLegal, .reason = {}};
    if (!candidate.legal) {
      candidate.reason = why_illegal(d, offer.verdict, request, capabilities);
    } else if (index(d.algorithm) == explanation.chosen) {
      candidate.reason = why_chosen(offer, decision.value(), restricted);
    } else if (explanation.chosen >= 0) {
      const Offer& chosen = offers[static_cast<std::size_t>(explanation.chosen)];
      candidate.reason = why_not_chosen(offer, chosen, request, overrides);
    }
    explanation.candidates.push_back(std::move(candidate));
  }
  return explanation;
}

std::string to_text(const Explanation& explanation) {
  std::string text = headline(explanation) + "\n";
  text += format("  %-18s %-12s %-10s %5s %8s %8s %14s  %s\n", "algorithm", "mechanism", "path", "CTAs",
                 "threads", "chunk", "predicted us", "reason");
  for (std::size_t i = 0; i < explanation.candidates.size(); ++i) {
    const Candidate& candidate = explanation.candidates[i];
    const Plan& plan = candidate.plan;
    const bool chosen = static_cast<int>(i) == explanation.chosen;
    const auto number = [&](std::uint64_t value) { return candidate.legal ? std::to_string(value) : "-"; };
    text += format("%c %-18s %-12s %-10s %5s %8s %8s %14s  ", chosen ? '*' : ' ',
                   std::string(name(plan.algorithm)).c_str(), std::string(name(plan.mechanism)).c_str(),
                   path_text(candidate), number(static_cast<unsigned>(plan.ctas)).c_str(),
                   number(static_cast<unsigned>(plan.threads)).c_str(),
                   plan.chunk_bytes != 0 ? format_bytes(plan.chunk_bytes).c_str() : "-",
                   candidate.legal ? microseconds(plan.predicted_ns).c_str() : "-");
    text += candidate.reason + "\n";
  }
  if (!explanation.note.empty()) text += "  note: " + explanation.note + "\n";
  return text;
}

void fill(const Explanation& explanation, pkcommExplanation_t& out) {
  static_assert(kAlgorithms <= PKCOMM_MAX_CANDIDATES);
  const std::size_t size = std::min(out.size, sizeof(pkcommExplanation_t));
  pkcommExplanation_t full{};
  full.size = out.size;
  full.candidates = static_cast<int>(explanation.candidates.size());
  full.chosen = explanation.chosen;
  for (std::size_t i = 0; i < explanation.candidates.size(); ++i) {
    const Candidate& candidate = explanation.candidates[i];
    pkcommCandidate_t& to = full.candidate[i];
    copy_text(to.algorithm, name(candidate.plan.algorithm));
    copy_text(to.mechanism, name(candidate.plan.mechanism));
    copy_text(to.reason, candidate.reason);
    to.predicted_us = -1;
    if (!candidate.legal) continue;
    to.ctas = candidate.plan.ctas;
    to.threads = candidate.plan.threads;
    to.chunk_bytes = candidate.plan.chunk_bytes;
    to.predicted_us = static_cast<double>(candidate.plan.predicted_ns) / 1000;
  }
  std::memcpy(&out, &full, size);
}

}  // namespace pkcomm::dispatch
