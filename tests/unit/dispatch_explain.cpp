// What --explain prints and pkcommExplain returns.
#include <cstring>
#include <string>

#include "dispatch/dispatcher.hpp"
#include "support/catch.hpp"
#include "topology/topology.hpp"

namespace pkcomm::dispatch {
namespace {

using test::contains_text;

Dispatcher dispatcher(const std::string& recording, const std::string& algorithm = "") {
  const auto topology = topology::load(PKCOMM_TEST_FIXTURES "/topologies/" + recording + ".json");
  REQUIRE(topology.ok());
  Capabilities capabilities = capabilities_of(topology.value());
  capabilities.ll_capacity_bytes = 128 << 10;
  capabilities.slot_bytes = 1 << 20;
  capabilities.engine_bytes = 1 << 20;
  Settings settings;
  settings.algorithm = environment::parse_rules(algorithm).value();
  Result<Dispatcher> made = Dispatcher::create(topology.value(), capabilities, settings);
  REQUIRE(made.ok());
  return std::move(made).value();
}

TEST_CASE("an explanation has every algorithm, one of them chosen, and it is the plan", "[unit][dispatch]") {
  const Dispatcher chooser = dispatcher("h200x4");
  for (int c = 0; c < kCollectives; ++c) {
    const Request request{.collective = static_cast<Collective>(c), .bytes = 1 << 20, .nranks = 4};
    const Explanation explanation = chooser.explain(request);
    REQUIRE(explanation.candidates.size() == kAlgorithms);
    REQUIRE(explanation.chosen >= 0);
    const Candidate& chosen = explanation.candidates[static_cast<std::size_t>(explanation.chosen)];
    CHECK(chosen.plan == chooser.plan(request).value());
    CHECK(chosen.legal);
    for (const Candidate& candidate : explanation.candidates) {
      CAPTURE(candidate.reason);
      CHECK_FALSE(candidate.reason.empty());
      CHECK(candidate.reason.size() < sizeof(pkcommCandidate_t::reason));
    }
  }
}

TEST_CASE("each reason is the one that holds", "[unit][dispatch]") {
  const std::string small = to_text(dispatcher("h200x4").explain({.bytes = 1024, .nranks = 4}));
  CHECK_THAT(small, contains_text("all_reduce, 1K bytes of float, sum, 4 ranks, no windows; table h200x4"));
  CHECK_THAT(small, contains_text("* one_shot_ll"));
  CHECK_THAT(small, contains_text("us slower"));
  CHECK_THAT(small, contains_text("no multicast: switched off by the operator"));
  CHECK_THAT(small, contains_text("does not do all_reduce"));
  const std::string large = to_text(dispatcher("h200x8_multicast").explain({.bytes = 1 << 28, .nranks = 8}));
  CHECK_THAT(large, contains_text("256M for one rank, packets hold 128K"));
  CHECK_THAT(large, contains_text("send and recv must be windows"));
  CHECK_THAT(large, contains_text("only where PKCOMM_ALGORITHM or PKCOMM_MECHANISM asks for it"));
  const std::string product = to_text(dispatcher("h200x8_multicast")
                                          .explain({.bytes = 4096,
                                                    .kind = numerics::ReduceKind::kProd,
                                                    .nranks = 8,
                                                    .send_window = true,
                                                    .recv_window = true}));
  CHECK_THAT(product, contains_text("the switch cannot do prod of float"));
  const std::string listed = to_text(dispatcher("host2", "direct_ldst").explain({.bytes = 1024}));
  CHECK_THAT(listed, contains_text("not allowed by PKCOMM_ALGORITHM"));
  CHECK_THAT(listed, contains_text("the cheapest that is allowed"));
  const std::string vain = to_text(dispatcher("host2", "multimem").explain({.bytes = 1024}));
  CHECK_THAT(vain, contains_text("note: PKCOMM_ALGORITHM allows nothing that is legal here, and is ignored"));
}

TEST_CASE("nothing is chosen where there is nothing to do", "[unit][dispatch]") {
  const Dispatcher chooser = dispatcher("host2");
  const Explanation idle = chooser.explain({.bytes = 0});
  CHECK(idle.chosen == -1);
  CHECK_THAT(to_text(idle), contains_text("nothing to do"));
  CHECK(chooser.explain({.collective = Collective::kBarrier}).chosen == 0);
  CHECK(chooser.explain({.collective = Collective::kAllToAllV}).chosen == index(Algorithm::kPairwise));
}

TEST_CASE("the C structure carries the same, and no more bytes than the caller has", "[unit][dispatch]") {
  const Explanation explanation = dispatcher("h200x4").explain({.bytes = 1 << 20, .nranks = 4});
  pkcommExplanation_t full{};
  full.size = sizeof(full);
  fill(explanation, full);
  CHECK(full.size == sizeof(full));
  CHECK(full.candidates == kAlgorithms);
  CHECK(full.chosen == explanation.chosen);
  CHECK(std::string(full.candidate[0].algorithm) == "one_shot_ll");
  CHECK(std::string(full.candidate[4].mechanism) == "copy engine");
  CHECK(full.candidate[0].predicted_us < 0);  // a megabyte does not fit into packets
  CHECK(full.candidate[full.chosen].predicted_us > 0);

  pkcommExplanation_t old{};
  std::memset(&old, 0x5a, sizeof(old));
  old.size = offsetof(pkcommExplanation_t, candidate);
  fill(explanation, old);
  CHECK(old.chosen == explanation.chosen);
  CHECK(static_cast<unsigned char>(old.candidate[0].algorithm[0]) == 0x5a);
}

}  // namespace
}  // namespace pkcomm::dispatch
