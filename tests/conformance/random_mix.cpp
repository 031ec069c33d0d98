// Collectives of any kind, back to back, against a serial reference. PKCOMM_TEST_OPERATIONS says how many, and
// PKCOMM_TEST_SEED repeats a run that failed.
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "support/mixed_call.hpp"

using namespace pkcomm::test;

namespace {

/// Calls on the streams at once.
constexpr std::uint64_t kMostTogether = 12;

void check_mix(int nranks, std::uint64_t operations, std::uint64_t seed) {
  reserve_visible(std::size_t{1} << 30);
  run_world(nranks, [&](Rank& self) {
    pkcommStream_t other = nullptr;
    if (!self.ok(pkcommStreamCreate(&other), "stream")) return;
    std::vector<MixedCall::Heap> heaps;
    for (std::uint64_t i = 0; i < kMostTogether; ++i) heaps.push_back(MixedCall::Heap::allocate(self));
    bool good = true;
    for (std::uint64_t next = 0; good && next < operations;) {
      const std::uint64_t together = 1 + random_word(seed, next, 1000) % kMostTogether;
      std::deque<MixedCall> calls;
      for (std::uint64_t i = 0; i < together; ++i) {
        // Each rank has its own mind about the streams.
        const bool first = random_word(seed, next + i, 1001 + static_cast<std::uint64_t>(self.rank)) % 2 == 0;
        calls.emplace_back(seed, next + i, self.with(first ? self.stream : other), heaps[i]).write(0);
      }
      for (MixedCall& call : calls) good = good && call.enqueue();
      good = self.synchronize(self.stream, "first stream") && good;
      good = self.synchronize(other, "second stream") && good;
      for (MixedCall& call : calls) good = good && call.check(0);
      next += together;
    }
    self.ok(pkcommStreamDestroy(other), "stream destroy");
  });
}

std::uint64_t seed_of_this_run() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return test_setting("SEED").value_or(static_cast<std::uint64_t>(now) % 1000000);
}

}  // namespace

TEST_CASE("a random mix of collectives equals the serial reference", "[conformance][mix]") {
  const int nranks = GENERATE(2, 4);
  const std::uint64_t operations = test_setting("OPERATIONS").value_or(on_cuda() ? 10000 : 500);
  const std::uint64_t seed = seed_of_this_run();
  CAPTURE(nranks, operations, seed);
  check_mix(nranks, operations, seed);
}

TEST_CASE("a random mix of collectives in many rounds, with late stores", "[conformance][mix]") {
  const std::uint64_t operations = test_setting("OPERATIONS").value_or(on_cuda() ? 10000 : 250);
  const std::uint64_t seed = seed_of_this_run();
  const Environment environment({{"PKCOMM_HOST_SEED", std::to_string(seed)},
                                 {"PKCOMM_CHUNK", "4K"},
                                 {"PKCOMM_STAGING", "1M"},
                                 {"PKCOMM_MIN_CTAS", "3"},
                                 {"PKCOMM_MAX_CTAS", "3"}});
  CAPTURE(operations, seed);
  check_mix(3, operations, seed);
}
