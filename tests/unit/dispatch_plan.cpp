// Properties of the choice that hold for all sizes, machines and group sizes.
#include <string>
#include <vector>

#include "collectives/descriptors.hpp"
#include "dispatch/dispatcher.hpp"
#include "support/catch.hpp"
#include "topology/topology.hpp"

namespace pkcomm::dispatch {
namespace {

constexpr std::size_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = std::size_t{1} << 30;

Dispatcher dispatcher(const std::string& recording, std::size_t chunk_bytes = 0) {
  const auto topology = topology::load(PKCOMM_TEST_FIXTURES "/topologies/" + recording + ".json");
  REQUIRE(topology.ok());
  Capabilities capabilities = capabilities_of(topology.value());
  capabilities.ll_capacity_bytes = 128 * kKiB;
  capabilities.slot_bytes = kMiB;
  capabilities.engine_bytes = kMiB;
  Settings settings;
  settings.chunk_bytes = chunk_bytes;
  Result<Dispatcher> made = Dispatcher::create(topology.value(), capabilities, settings);
  REQUIRE(made.ok());
  return std::move(made).value();
}

Plan plan_of(const Dispatcher& dispatcher, const Request& request) {
  const Result<Plan> plan = dispatcher.plan(request);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return plan.value();
}

std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all{0, 1};
  for (std::size_t size = 8; size <= 4 * kGiB; size *= 2) all.insert(all.end(), {size - 1, size, size + 1});
  all.push_back(SIZE_MAX / 2);
  return all;
}

TEST_CASE("large all_reduce takes the switch where it saves bytes: with 8 ranks, never with 2",
          "[unit][dispatch]") {
  struct Row {
    const char* recording;
    int nranks;
    bool multicast, windows, takes_switch;
  };
  const auto row = GENERATE(values<Row>({{"h200x8_multicast", 8, true, true, true},
                                         {"h200x8_multicast", 8, true, false, false},
                                         {"h200x8", 8, false, true, false},
                                         {"gb200x72_multicast", 72, true, true, true},
                                         {"h200x2_multicast", 2, true, true, false}}));
  CAPTURE(row.recording, row.windows);
  const Dispatcher chooser = dispatcher(row.recording);
  for (std::size_t bytes = 16 * kMiB; bytes <= kGiB; bytes *= 2) {
    CAPTURE(bytes);
    const Plan plan = plan_of(chooser, {.bytes = bytes,
                                        .dtype = pkcommBfloat16,
                                        .nranks = row.nranks,
                                        .send_window = row.windows,
                                        .recv_window = row.windows});
    CHECK((plan.algorithm == Algorithm::kMultimem) == row.takes_switch);
  }
}

TEST_CASE("all_gather of a gigabyte between windows holds no SM", "[unit][dispatch]") {
  const Plan plan = plan_of(
      dispatcher("h200x4"),
      {.collective = Collective::kAllGather, .bytes = kGiB, .nranks = 4, .recv_window = true, .min_ctas = 4});
  CHECK(plan.algorithm == Algorithm::kCopyEngine);
  CHECK(plan.ctas == 0);
  CHECK(plan.zero_copy);
}

TEST_CASE("the switch reduces only what it can, and never where order matters", "[unit][dispatch]") {
  const Dispatcher chooser = dispatcher("h200x8_multicast");
  Request request{.bytes = 256 * kMiB, .nranks = 8, .send_window = true, .recv_window = true};
  struct Row {
    pkcommDataType_t dtype;
    numerics::ReduceKind kind;
    bool possible;
  };
  using enum numerics::ReduceKind;
  const auto row = GENERATE(values<Row>({{pkcommFloat32, kSum, true},
                                         {pkcommFloat32, kMax, false},
                                         {pkcommFloat64, kSum, true},
                                         {pkcommFloat64, kMin, false},
                                         {pkcommFloat16, kMin, true},
                                         {pkcommBfloat16, kMax, true},
                                         {pkcommInt64, kSum, true},
                                         {pkcommUint64, kMax, true},
                                         {pkcommInt8, kSum, false},
                                         {pkcommFloat8e4m3, kSum, false},
                                         {pkcommFloat32, kProd, false},
                                         {pkcommBfloat16, kAvg, false},
                                         {pkcommFloat32, kPreMulSum, false}}));
  request.dtype = row.dtype;
  request.kind = row.kind;
  CAPTURE(numerics::name(row.dtype), numerics::name(row.kind));
  CHECK((plan_of(chooser, request).algorithm == Algorithm::kMultimem) == row.possible);
  request.deterministic = true;
  CHECK(plan_of(chooser, request).algorithm != Algorithm::kMultimem);
}

TEST_CASE("every call has a plan that keeps within staging, packets and the bounds on CTAs",
          "[unit][dispatch]") {
  const std::string recording =
      GENERATE("host2", "h200x2", "h200x4", "h200x8_multicast", "gb200x72_multicast");
  const Dispatcher chooser = dispatcher(recording);
  const Capabilities& capabilities = chooser.capabilities();
  struct Bounds {
    int least, most;
  };
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (const int nranks : {1, 2, 3, 7, 8, 72, 1024}) {
      for (const Bounds bounds : {Bounds{1, 64}, Bounds{1, 1}, Bounds{20, 20}, Bounds{64, 64}}) {
        for (const bool windows : {false, true}) {
          for (const std::size_t bytes : sizes()) {
            const Plan plan = plan_of(chooser, {.collective = collective,
                                                .bytes = bytes,
                                                .nranks = nranks,
                                                .send_window = windows,
                                                .recv_window = windows,
                                                .min_ctas = bounds.least,
                                                .max_ctas = bounds.most});
            const Descriptor& d = descriptor(plan.algorithm);
            const bool by_ctas = plan.ctas >= bounds.least && plan.ctas <= bounds.most;
            const bool staged = d.route == Route::kEither && !plan.zero_copy;
            const std::size_t share =
                capabilities.slot_bytes / static_cast<std::size_t>(std::max(plan.ctas, 1));
            const bool holds =
                (d.collectives & bit(collective)) != 0 && d.mechanism == plan.mechanism &&
                (by_ctas || (plan.ctas == 0 && d.spares_ctas)) && plan.threads >= 1 &&
                (windows || !plan.zero_copy) && !d.forced_only && (plan.chunk_bytes != 0) == staged &&
                plan.chunk_bytes % 256 == 0 && plan.chunk_bytes * 2 <= share &&
                (d.route != Route::kPackets ||
                 pair_bytes(plan.algorithm, collective, bytes, nranks) <= capabilities.ll_capacity_bytes);
            if (!holds) {
              CAPTURE(recording, name(collective), nranks, bounds.least, bounds.most, windows, bytes);
              FAIL(name(plan.algorithm) << " " << plan.ctas << " CTAs, chunk " << plan.chunk_bytes);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a larger message is never predicted to be faster", "[unit][dispatch]") {
  const Dispatcher chooser = dispatcher(GENERATE("host2", "h200x2", "h200x4", "h200x8_multicast"));
  for (int c = 0; c < kCollectives; ++c) {
    for (const bool windows : {false, true}) {
      std::uint64_t last = 0;
      for (std::size_t bytes = 8; bytes <= 4 * kGiB; bytes *= 2) {
        const Plan plan = plan_of(chooser, {.collective = static_cast<Collective>(c),
                                            .bytes = bytes,
                                            .nranks = 4,
                                            .send_window = windows,
                                            .recv_window = windows});
        CAPTURE(name(static_cast<Collective>(c)), windows, bytes, name(plan.algorithm));
        CHECK(plan.predicted_ns >= last);
        last = plan.predicted_ns;
      }
    }
  }
}

TEST_CASE("the user's chunk is taken as far as staging has room for two of it", "[unit][dispatch]") {
  struct Row {
    std::size_t wanted, chunk;
  };
  const auto row =
      GENERATE(values<Row>({{4096, 4096}, {5000, 4864}, {100 * kKiB, 100 * kKiB}, {16 * kMiB, 512 * kKiB}}));
  const Plan plan = plan_of(dispatcher("host2", row.wanted), {.bytes = 64 * kMiB});
  REQUIRE(plan.ctas == 1);
  CHECK(plan.chunk_bytes == row.chunk);
}

TEST_CASE("without staging and windows there is no way, and the failure says so", "[unit][dispatch]") {
  const auto none = Dispatcher::create(Topology{}, Capabilities{}, {});
  REQUIRE(none.ok());
  const Result<Plan> plan = none.value().plan({.bytes = 4096, .nranks = 3});
  CHECK(plan.status().code() == pkcommUnsupported);
  CHECK_THAT(plan.status().message(), test::contains_text("all_reduce of 4K bytes with 3 ranks"));
  CHECK(none.value().plan({.bytes = 4096, .nranks = 3, .send_window = true, .recv_window = true}).ok());
}

TEST_CASE("names are found whatever their case and their joints", "[unit][dispatch]") {
  for (int i = 0; i < kCollectives; ++i) {
    const auto value = static_cast<Collective>(i);
    CHECK(find_collective(name(value)) == value);
  }
  for (const Descriptor& d : descriptors()) CHECK(find_algorithm(d.name) == d.algorithm);
  CHECK(find_algorithm("One-Shot LL") == Algorithm::kOneShotLl);
  CHECK(find_mechanism("copy_engine") == Mechanism::kCopyEngine);
  CHECK(find_mechanism("Peer-Loop") == Mechanism::kPeerLoop);
  CHECK_FALSE(find_algorithm("ring").has_value());
  CHECK_FALSE(find_collective("").has_value());
}

TEST_CASE("bytes through the busiest port are those of the schedules", "[unit][dispatch]") {
  struct Row {
    Algorithm algorithm;
    Collective collective;
    bool zero_copy;
    std::uint64_t wire;  // of 4096 bytes among 4 ranks
  };
  using enum Algorithm;
  using enum Collective;
  const auto row = GENERATE(values<Row>({
      {kOneShotLl, kAllReduce, false, 2 * 3 * 4096},
      {kOneShotLl, kAllGather, false, 2 * 3 * 1024},
      {kOneShotLl, kBarrier, false, 0},
      {kTwoShotLl, kAllReduce, false, 2 * 2 * 3 * 1024},
      {kDirectLdst, kAllReduce, true, 2 * 3 * 1024},
      {kDirectTma, kReduceScatter, true, 3 * 1024},
      {kCopyEngine, kBroadcast, true, 3 * 4096},
      {kDirectLdst, kReduce, true, 3 * 4096},
      {kDirectLdst, kReduce, false, 2 * 3 * 1024},
      {kMultimem, kAllReduce, true, 4096 + 1024},
      {kMultimem, kReduceScatter, true, 4096},
  }));
  CHECK(wire_bytes(row.algorithm, row.collective, 4096, 4, row.zero_copy) == row.wire);
}

TEST_CASE("sizes near the end of the type saturate and do not wrap", "[unit][dispatch]") {
  CHECK(wire_bytes(Algorithm::kOneShotLl, Collective::kAllReduce, SIZE_MAX / 2, 1024, false) == UINT64_MAX);
  const Dispatcher chooser = dispatcher("h200x8");
  const Plan plan = plan_of(chooser, {.bytes = SIZE_MAX / 2, .nranks = 1024});
  CHECK(plan.predicted_ns > std::uint64_t{1000} * 1000 * 1000 * 1000);
}

}  // namespace
}  // namespace pkcomm::dispatch
