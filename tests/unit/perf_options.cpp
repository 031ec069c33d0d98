// pkcomm-perf: flags for GPUs and for NCCL, and what follows from them. Refusals are tested on the program
// itself.
#include <sstream>
#include <string>
#include <vector>

#include "pkcomm-perf/combine.hpp"
#include "pkcomm-perf/options.hpp"
#include "support/catch.hpp"

using namespace pkcomm::perf;

namespace {

Options parsed(const std::string& words) {
  std::vector<std::string> arguments = {"pkcomm-perf", "all_reduce"};
  std::istringstream stream(words);
  for (std::string word; stream >> word;) arguments.push_back(word);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int exit_code = 0;
  const std::optional<Options> options = parse_options(static_cast<int>(argv.size()), argv.data(), exit_code);
  REQUIRE(options.has_value());
  return *options;
}

}  // namespace

TEST_CASE("pkcomm alone is measured, one call after another, unless more is asked for", "[unit][perf]") {
  const Options options = parsed("");
  CHECK(options.with_pkcomm);
  CHECK_FALSE(options.with_nccl);
  CHECK(options.graph_flag.empty());
  CHECK_FALSE(options.across.has_value());
  CHECK(options.repeats == 0);
}

TEST_CASE("backends are named one by one", "[unit][perf]") {
  CHECK(parsed("--backend pkcomm,nccl").with_pkcomm);
  CHECK(parsed("--backend nccl,pkcomm").with_nccl);
  const Options alone = parsed("--backend nccl --nccl-lib /opt/libnccl.so.2");
  CHECK(alone.with_nccl);
  CHECK_FALSE(alone.with_pkcomm);
  CHECK(alone.nccl_library == "/opt/libnccl.so.2");
}

TEST_CASE("graphs are asked for by this program's flag and by that of nccl-tests", "[unit][perf]") {
  CHECK(parsed("--graph").graph_flag == "--graph");
  CHECK(parsed("--graph").graph_calls == 100);
  CHECK(parsed("--graph --graph-calls 20 --eager").graph_calls == 20);
  const Options replayed = parsed("-G 3");
  CHECK(replayed.graph_flag == "-G 3");
  CHECK(replayed.graph_replays == 3);
  CHECK(parsed("-G 0").graph_flag.empty());
}

TEST_CASE("a graph holds fewer calls where they take long", "[unit][perf]") {
  CHECK(calls_in_graph(100, 8) == 100);
  CHECK(calls_in_graph(100, std::size_t{4} << 20) == 100);
  CHECK(calls_in_graph(100, std::size_t{16} << 20) == 25);
  CHECK(calls_in_graph(100, std::size_t{1} << 30) == 4);
  CHECK(calls_in_graph(2, std::size_t{1} << 30) == 2);
}

TEST_CASE("fewer large operations than small ones are enqueued before the stream runs", "[unit][perf]") {
  CHECK(operations_in_one_go(32, 8) == 32);
  CHECK(operations_in_one_go(32, (std::size_t{1} << 20) + 4) == 8);
  CHECK(operations_in_one_go(2, std::size_t{2} << 20) == 1);
  CHECK(operations_in_one_go(32, kOutlastsLaunches + 4) > 1'000'000);
}

TEST_CASE("the time of a row is the median over repetitions of what -a makes of the ranks", "[unit][perf]") {
  const std::vector<double> times = {1, 5, 3,   // rank 0
                                     2, 1, 9};  // rank 1
  CHECK(one_time(times, 3, Across::kMax) == 5);
  CHECK(one_time(times, 3, Across::kMin) == 1);
  CHECK(one_time(times, 3, Across::kRank0) == 3);
  CHECK(one_time(times, 3, Across::kMean) == 3);
  CHECK(one_time({7}, 1, Across::kMean) == 7);
}
