// The choices for the recorded machines, over sizes, collectives and kinds of memory, printed and compared with
// tests/fixtures/plans/. A change of constants or rules changes them: REGENERATE_FIXTURES=1 writes them anew, and the
// difference is what the change does; it is to be read before it is committed.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/text.hpp"
#include "collectives/descriptors.hpp"
#include "dispatch/dispatcher.hpp"
#include "support/catch.hpp"
#include "topology/topology.hpp"

namespace pkcomm::dispatch {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;
// 64 MiB in the shares of protocol/layout.cpp; written out, so that these tables change with the dispatcher alone.
constexpr std::size_t kStaging = std::size_t{64} << 20;

std::string pad(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string microseconds(std::uint64_t ns) {
  return std::to_string(ns / 1000) + "." + std::to_string(ns % 1000 / 100);
}

std::string describe(const Plan& plan) {
  const Route route = descriptor(plan.algorithm).route;
  const char* path = route == Route::kEither ? (plan.zero_copy ? "zero-copy" : "staged") : "";
  return pad(std::string(name(plan.algorithm)), 14) + pad(path, 10) + pad(std::to_string(plan.ctas), 4) +
         pad(plan.chunk_bytes != 0 ? format_bytes(plan.chunk_bytes) : "-", 7) +
         pad(microseconds(plan.predicted_ns), 11);
}

// The cheapest by time of those not chosen.
std::string runner_up(const Explanation& explanation) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : explanation.candidates) {
    const bool chosen = index(candidate.plan.algorithm) == explanation.chosen;
    if (!candidate.legal || chosen) continue;
    if (best == nullptr || candidate.plan.predicted_ns < best->plan.predicted_ns) best = &candidate;
  }
  if (best == nullptr) return "-";
  return std::string(name(best->plan.algorithm)) + " " + microseconds(best->plan.predicted_ns);
}

std::string print_plans(const std::string& recording, int nranks) {
  const auto topology = topology::load(PKCOMM_TEST_FIXTURES "/topologies/" + recording + ".json");
  REQUIRE(topology.ok());
  Capabilities capabilities = capabilities_of(topology.value());
  const auto slots = static_cast<std::size_t>(4 * nranks);
  capabilities.ll_capacity_bytes = std::min<std::size_t>(kStaging / 4 / slots / 2 / 64 * 64, 128 << 10);
  capabilities.slot_bytes = kStaging / 8 * 3 / slots / 1024 * 1024;
  capabilities.engine_bytes = kStaging / 8 / slots / 1024 * 1024;
  const auto dispatcher = Dispatcher::create(topology.value(), capabilities, {});
  REQUIRE(dispatcher.ok());

  std::ostringstream out;
  out << "# " << topology.value().machine << ", " << nranks << " ranks, 64M of staging, sum of bfloat16\n"
      << "# size algorithm path CTAs chunk us, and the next best\n";
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const bool sized = has_common_size(collective);
    for (const bool windows : {false, true}) {
      if (windows && !sized) continue;
      out << "\n" << name(collective) << (windows ? ", windows" : ", any memory") << "\n";
      for (std::size_t bytes = 8; bytes <= (sized ? kGiB : 8); bytes *= 8) {
        const Request request{.collective = collective,
                              .bytes = sized ? bytes : 0,
                              .dtype = pkcommBfloat16,
                              .nranks = nranks,
                              .send_window = windows,
                              .recv_window = windows};
        const Result<Plan> plan = dispatcher.value().plan(request);
        REQUIRE(plan.ok());
        out << "  " << pad(sized ? format_bytes(bytes) : "-", 6) << describe(plan.value()) << "| "
            << runner_up(dispatcher.value().explain(request)) << "\n";
      }
    }
  }
  return out.str();
}

TEST_CASE("the plans for recorded machines are those on record", "[unit][dispatch]") {
  struct Row {
    std::string recording;
    int nranks;
  };
  const auto row = GENERATE(values<Row>({{"host2", 2},
                                         {"host2", 8},
                                         {"h200x2", 2},
                                         {"h200x2_multicast", 2},
                                         {"h200x4", 4},
                                         {"h200x4_multicast", 4},
                                         {"h200x8", 8},
                                         {"h200x8_multicast", 8},
                                         {"gb200x72_multicast", 72}}));
  const std::string path =
      PKCOMM_TEST_FIXTURES "/plans/" + row.recording + "_" + std::to_string(row.nranks) + "_ranks.txt";
  CAPTURE(path);
  const std::string now = print_plans(row.recording, row.nranks);
  if (std::getenv("REGENERATE_FIXTURES") != nullptr) {
    std::ofstream(path, std::ios::binary) << now;
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream on_record;
  on_record << file.rdbuf();
  INFO("to accept the new plans: REGENERATE_FIXTURES=1, then read the difference");
  CHECK(on_record.str() == now);
}

}  // namespace
}  // namespace pkcomm::dispatch
