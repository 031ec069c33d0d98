// The user's lists: what they mean for each collective, and what is said where they cannot be met.
#include <string>

#include "base/environment.hpp"
#include "collectives/descriptors.hpp"
#include "dispatch/dispatcher.hpp"
#include "dispatch/overrides.hpp"
#include "support/catch.hpp"

namespace pkcomm::dispatch {
namespace {

Overrides overrides(const std::string& algorithm, const std::string& mechanism = "") {
  const auto rules = [](const std::string& text) {
    auto parsed = environment::parse_rules(text);
    REQUIRE(parsed.ok());
    return std::move(parsed).value();
  };
  return Overrides::from_rules(rules(algorithm), rules(mechanism), 0);
}

Dispatcher dispatcher(const std::string& algorithm, const std::string& mechanism = "") {
  Settings settings;
  settings.algorithm = environment::parse_rules(algorithm).value();
  settings.mechanism = environment::parse_rules(mechanism).value();
  Capabilities capabilities;
  capabilities.ll_capacity_bytes = 64 << 10;
  capabilities.slot_bytes = 1 << 20;
  capabilities.engine_bytes = 1 << 20;
  Result<Dispatcher> made = Dispatcher::create(Topology{}, capabilities, settings);
  REQUIRE(made.ok());
  return std::move(made).value();
}

TEST_CASE("lists allow and deny for all collectives or for one", "[unit][dispatch]") {
  struct Row {
    std::string text;
    Collective collective;
    std::string allowed;  // of the algorithms that do this collective and need not be asked for, on a host
  };
  const std::string every =
      "one_shot_ll two_shot_ll direct_ldst direct_tma copy_engine multimem multimem_emulated ";
  const auto row = GENERATE_COPY(values<Row>({
      {"", Collective::kAllReduce, every},
      {"one_shot_ll", Collective::kAllReduce, "one_shot_ll "},
      {"one_shot_ll,TWO_SHOT_LL", Collective::kAllReduce, "one_shot_ll two_shot_ll "},
      {"all_reduce:two_shot_ll;broadcast:^copy_engine", Collective::kAllReduce, "two_shot_ll "},
      {"all_reduce:two_shot_ll;broadcast:^copy_engine", Collective::kBroadcast,
       "one_shot_ll two_shot_ll direct_ldst direct_tma multimem multimem_emulated "},
      {"all_reduce:two_shot_ll", Collective::kReduceScatter,
       "one_shot_ll direct_ldst direct_tma copy_engine multimem multimem_emulated "},
      {"^one_shot_ll,copy_engine", Collective::kAllReduce,
       "two_shot_ll direct_ldst direct_tma multimem multimem_emulated "},
      {"^one_shot_ll,^copy_engine", Collective::kAllReduce,
       "two_shot_ll direct_ldst direct_tma multimem multimem_emulated "},
      {"direct_ldst;all_reduce:one_shot_ll", Collective::kAllReduce, "one_shot_ll "},
      {"direct_ldst;all_reduce:one_shot_ll", Collective::kGather, "direct_ldst "},
      {"direct_ldst", Collective::kSendRecv, "pairwise "},  // has one way only
      {"direct_ldst", Collective::kBarrier, "one_shot_ll "},
      {"ring", Collective::kAllReduce, every},  // unknown: as unset
      {"allreduce:one_shot_ll", Collective::kAllReduce, every},
      {"ring,one_shot_ll", Collective::kAllReduce, "one_shot_ll "},
  }));
  CAPTURE(row.text, name(row.collective));
  const Overrides wishes = overrides(row.text);
  std::string allowed;
  for (const Descriptor& d : descriptors()) {
    if ((d.collectives & bit(row.collective)) == 0) continue;
    if (wishes.allows(row.collective, d.algorithm)) allowed.append(d.name).append(" ");
  }
  CHECK(allowed == row.allowed);
}

TEST_CASE("mechanisms are listed like algorithms, blanks written as underscores", "[unit][dispatch]") {
  const Overrides wishes = overrides("", "all_gather:copy_engine;reduce:^register");
  CHECK(wishes.allows(Collective::kAllGather, Mechanism::kCopyEngine));
  CHECK_FALSE(wishes.allows(Collective::kAllGather, Mechanism::kRegister));
  CHECK_FALSE(wishes.allows(Collective::kReduce, Mechanism::kRegister));
  CHECK(wishes.allows(Collective::kReduce, Mechanism::kTma));
  CHECK(wishes.allows(Collective::kAllReduce, Mechanism::kRegister));
}

TEST_CASE("an algorithm for tests alone runs only when a list names it or its mechanism",
          "[unit][dispatch]") {
  Request request{.bytes = 1 << 20, .nranks = 4, .send_window = true, .recv_window = true};
  CHECK(dispatcher("").plan(request).value().algorithm != Algorithm::kMultimemEmulated);
  CHECK(dispatcher("^direct_ldst").plan(request).value().algorithm != Algorithm::kMultimemEmulated);
  CHECK(dispatcher("multimem_emulated").plan(request).value().algorithm == Algorithm::kMultimemEmulated);
  CHECK(dispatcher("", "peer_loop").plan(request).value().algorithm == Algorithm::kMultimemEmulated);
  request.send_window = false;
  const Plan plan = dispatcher("multimem_emulated").plan(request).value();
  CHECK(plan.algorithm != Algorithm::kMultimemEmulated);
  CHECK(plan == dispatcher("").plan(request).value());
}

TEST_CASE("lists that allow nothing legal give way, the mechanism's first", "[unit][dispatch]") {
  const Request large{.bytes = 1 << 26, .nranks = 4};
  const auto decide = [&](const std::string& algorithm, const std::string& mechanism) {
    Capabilities capabilities;
    capabilities.ll_capacity_bytes = 64 << 10;
    capabilities.slot_bytes = 1 << 20;
    capabilities.engine_bytes = 1 << 20;
    return plan(large, capabilities, Tuning::builtin(Topology{}).value(), overrides(algorithm, mechanism))
        .value();
  };
  const Decision packets = decide("one_shot_ll", "");
  CHECK(packets.algorithm_ignored);
  CHECK(packets.plan == decide("", "").plan);
  const Decision conflict = decide("direct_tma", "copy_engine");
  CHECK_FALSE(conflict.algorithm_ignored);
  CHECK(conflict.mechanism_ignored);
  CHECK(conflict.plan.algorithm == Algorithm::kDirectTma);
  const Decision second = decide("one_shot_ll", "copy_engine");
  CHECK(second.algorithm_ignored);
  CHECK_FALSE(second.mechanism_ignored);
  CHECK(second.plan.algorithm == Algorithm::kCopyEngine);
}

TEST_CASE("whatever could change a decision changes the hash that ranks compare", "[unit][dispatch]") {
  const std::uint64_t plain = dispatcher("").agreement_hash();
  CHECK(dispatcher("").agreement_hash() == plain);
  CHECK(dispatcher("^copy_engine").agreement_hash() != plain);
  CHECK(dispatcher("", "^copy_engine").agreement_hash() != plain);
  CHECK(dispatcher("ring").agreement_hash() == plain);  // has no effect

  Settings settings;
  settings.chunk_bytes = 4096;
  Capabilities capabilities = dispatcher("").capabilities();
  CHECK(Dispatcher::create(Topology{}, capabilities, settings).value().agreement_hash() != plain);
  capabilities.slot_bytes += 1024;
  CHECK(Dispatcher::create(Topology{}, capabilities, {}).value().agreement_hash() != plain);
  capabilities = dispatcher("").capabilities();
  capabilities.multicast_reason = "another reason";
  CHECK(Dispatcher::create(Topology{}, capabilities, {}).value().agreement_hash() == plain);
}

TEST_CASE("a tuning file that cannot be used leaves the built-in table in force", "[unit][dispatch]") {
  Settings settings;
  settings.tuning_file = "/nonexistent/table.json";
  const Capabilities capabilities = dispatcher("").capabilities();
  const auto made = Dispatcher::create(Topology{}, capabilities, settings);
  REQUIRE(made.ok());
  CHECK(made.value().agreement_hash() == dispatcher("").agreement_hash());
}

}  // namespace
}  // namespace pkcomm::dispatch
