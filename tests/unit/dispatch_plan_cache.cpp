// Remembered plans are the plans that pricing gives, whoever asks at the same time.
#include <atomic>
#include <thread>
#include <vector>

#include "dispatch/dispatcher.hpp"
#include "support/catch.hpp"

namespace pkcomm::dispatch {
namespace {

std::vector<Request> requests() {
  std::vector<Request> all;
  for (int c = 0; c < kCollectives; ++c) {
    for (std::size_t bytes = 8; bytes <= std::size_t{1} << 26; bytes *= 8) {
      for (const bool window : {false, true}) {
        all.push_back({.collective = static_cast<Collective>(c),
                       .bytes = bytes,
                       .nranks = 3,
                       .send_window = window,
                       .recv_window = window});
      }
    }
  }
  return all;
}

TEST_CASE("requests that differ in one field never share a remembered plan", "[unit][dispatch]") {
  const Request plain{.bytes = 4096, .nranks = 4};
  std::vector<Request> others(12, plain);
  others[0].collective = Collective::kReduce;
  others[1].bytes = 4097;
  others[2].dtype = pkcommFloat8e5m2;
  others[3].kind = numerics::ReduceKind::kPreMulSum;
  others[4].nranks = 1024;
  others[5].send_window = true;
  others[6].recv_window = true;
  others[7].min_ctas = 2;
  others[8].max_ctas = 63;
  others[9].deterministic = true;
  others[10].bytes = 0;
  others[11].bytes = SIZE_MAX;
  PlanCache cache;
  CHECK_FALSE(cache.find(plain).has_value());
  CHECK_FALSE(cache.find(others[10]).has_value());
  const Plan plan{.algorithm = Algorithm::kPairwise,
                  .mechanism = Mechanism::kPeerLoop,
                  .zero_copy = true,
                  .ctas = 64,
                  .threads = 1024,
                  .chunk_bytes = SIZE_MAX,
                  .predicted_ns = UINT64_MAX};
  cache.keep(plain, plan);
  CHECK(cache.find(plain) == plan);
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(cache.find(others[i]).has_value());
  }
}

TEST_CASE("threads that ask one dispatcher at once all get the plan that pricing gives", "[unit][dispatch]") {
  Capabilities capabilities;
  capabilities.ll_capacity_bytes = 64 << 10;
  capabilities.slot_bytes = 1 << 20;
  capabilities.engine_bytes = 1 << 20;
  const auto made = Dispatcher::create(Topology{}, capabilities, {});
  REQUIRE(made.ok());
  const auto tuning = Tuning::builtin(Topology{});
  REQUIRE(tuning.ok());
  const std::vector<Request> asked = requests();
  std::vector<Plan> expected;
  for (const Request& request : asked) {
    expected.push_back(plan(request, capabilities, tuning.value(), Overrides{}).value().plan);
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 20000; ++i) {
        // Runs of equal requests, so that entries are both hit and replaced.
        const std::size_t at = (i / 3 * (t + 1)) % asked.size();
        if (made.value().plan(asked[at]).value() != expected[at]) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load() == 0);
}

}  // namespace
}  // namespace pkcomm::dispatch
