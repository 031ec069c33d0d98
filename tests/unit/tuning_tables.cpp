// The built-in tables: complete, and chosen by machine; overlays: whole or not at all.
#include <string>

#include "collectives/descriptors.hpp"
#include "dispatch/tables/tables.hpp"
#include "dispatch/tuning.hpp"
#include "support/catch.hpp"
#include "topology/topology.hpp"

namespace pkcomm::dispatch {
namespace {

using test::contains_text;

Topology machine(const std::string& gpu) {
  Topology topology;
  if (gpu.empty()) return topology;
  topology.platform = PlatformKind::kCuda;
  topology.gpus.push_back(
      {.name = gpu, .arch = "", .sms = 0, .links = 0, .link_mb_per_s = 0, .multicast = false});
  return topology;
}

Tuning builtin(const std::string& gpu) {
  Result<Tuning> tuning = Tuning::builtin(machine(gpu));
  INFO(tuning.status().message());
  REQUIRE(tuning.ok());
  return std::move(tuning).value();
}

constexpr const char* kOneCurve =
    R"({"schema": 1, "name": "mine", "machine": {"platform": "host"}, "curves": [
        {"collectives": ["all_reduce"], "algorithms": ["one_shot_ll"], "paths": ["staged"], "nranks": 4,
         "lines": [{"ctas": 1, "alpha_ns": 12345, "bytes_per_us": 1000}]}]})";

TEST_CASE("every built-in table has a curve for all that an algorithm can do", "[unit][tuning]") {
  const std::string gpu = GENERATE("", "NVIDIA H200", "NVIDIA GB200");
  const Tuning tuning = builtin(gpu);
  for (const Descriptor& d : descriptors()) {
    if (d.needs_multicast && gpu.empty()) continue;  // no host has a switch
    for (int i = 0; i < kCollectives; ++i) {
      const auto collective = static_cast<Collective>(i);
      if ((d.collectives & bit(collective)) == 0) continue;
      CAPTURE(gpu, d.name, name(collective));
      if (d.route != Route::kWindows)
        CHECK(tuning.find(collective, d.algorithm, Path::kStaged, 4) != nullptr);
      if (d.route == Route::kWindows || d.route == Route::kEither) {
        CHECK(tuning.find(collective, d.algorithm, Path::kZeroCopy, 4) != nullptr);
      }
    }
  }
}

TEST_CASE("each constant of a built-in table says what it rests on", "[unit][tuning]") {
  const Tuning tuning = builtin(GENERATE("", "NVIDIA H200", "NVIDIA GB200"));
  for (const Descriptor& d : descriptors()) {
    for (int i = 0; i < kCollectives; ++i) {
      for (const Path path : {Path::kStaged, Path::kZeroCopy}) {
        for (const int nranks : {2, 4, 8}) {
          const Curve* curve = tuning.find(static_cast<Collective>(i), d.algorithm, path, nranks);
          if (curve != nullptr) CHECK_FALSE(curve->source.empty());
        }
      }
    }
  }
}

TEST_CASE("a curve serves the groups from its own size up to the next", "[unit][tuning]") {
  const Tuning tuning = builtin("NVIDIA H200");
  const auto nranks_of = [&](int nranks) {
    return tuning.find(Collective::kAllReduce, Algorithm::kOneShotLl, Path::kStaged, nranks)->nranks;
  };
  CHECK(nranks_of(1) == 2);
  CHECK(nranks_of(2) == 2);
  CHECK(nranks_of(3) == 2);
  CHECK(nranks_of(4) == 4);
  CHECK(nranks_of(7) == 4);
  CHECK(nranks_of(8) == 8);
  CHECK(nranks_of(1000) == 8);
}

TEST_CASE("GPUs without a table get that of others, and a note", "[unit][tuning]") {
  CHECK(builtin("NVIDIA H200").note().empty());
  const Tuning unknown = builtin("Imaginary 9000");
  CHECK_THAT(unknown.note(), contains_text("no table for Imaginary 9000: that for NVIDIA H200 stands in"));
  CHECK(unknown.hash() == builtin("NVIDIA H200").hash());
}

TEST_CASE("an overlay replaces its own curves and leaves the others", "[unit][tuning]") {
  Tuning tuning = builtin("");
  const std::uint64_t before = tuning.hash();
  REQUIRE(tuning.overlay(kOneCurve, "file", machine("")).ok());
  CHECK(tuning.hash() != before);
  CHECK(tuning.name() == "host + mine");
  const auto alpha = [&](Collective collective, int nranks) {
    return tuning.find(collective, Algorithm::kOneShotLl, Path::kStaged, nranks)->lines.front().alpha_ns;
  };
  CHECK(alpha(Collective::kAllReduce, 4) == 12345);
  CHECK(alpha(Collective::kAllReduce, 72) == 12345);
  CHECK(alpha(Collective::kAllReduce, 2) != 12345);
  CHECK(alpha(Collective::kBroadcast, 4) != 12345);
}

TEST_CASE("another machine's table is refused with both names, and nothing changes", "[unit][tuning]") {
  Tuning tuning = builtin("NVIDIA H200");
  const std::uint64_t before = tuning.hash();
  const Status status = tuning.overlay(kOneCurve, "file", machine("NVIDIA H200"));
  CHECK(status.code() == pkcommInvalidArgument);
  CHECK_THAT(status.message(), contains_text("for platform \"host\", this machine has \"cuda\""));
  CHECK(tuning.hash() == before);

  Topology here = machine("");
  here.cpu = "This CPU";
  const std::string text =
      R"({"schema": 1, "machine": {"platform": "host", "cpu": "That CPU"}, "curves": []})";
  CHECK_THAT(builtin("").overlay(text, "file", here).message(),
             contains_text("for CPU \"That CPU\", this machine has \"This CPU\""));
}

TEST_CASE("the rate of a line comes out as nanoseconds per byte", "[unit][tuning]") {
  Tuning tuning = builtin("");
  REQUIRE(tuning.overlay(kOneCurve, "file", machine("")).ok());
  const Curve* curve = tuning.find(Collective::kAllReduce, Algorithm::kOneShotLl, Path::kStaged, 4);
  CHECK(curve->lines.front().ns_per_byte == std::uint64_t{1} << 32);  // 1000 bytes a microsecond
}

}  // namespace
}  // namespace pkcomm::dispatch
