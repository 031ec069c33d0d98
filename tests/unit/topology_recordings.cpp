// Recorded machines: what the fixtures hold, and that no text whatever does more harm than a sentence.
#include <random>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "support/catch.hpp"
#include "topology/topology.hpp"

namespace pkcomm {
namespace {

using test::contains_text;

std::string fixture(const std::string& name) {
  return std::string(PKCOMM_TEST_FIXTURES "/topologies/") + name + ".json";
}

TEST_CASE("recorded machines load with their GPUs and their multicast", "[unit][topology]") {
  struct Row {
    std::string name;
    PlatformKind platform;
    std::size_t gpus;
    bool multicast;
  };
  const auto row = GENERATE(values<Row>({{"host2", PlatformKind::kHost, 0, false},
                                         {"h200x2", PlatformKind::kCuda, 2, false},
                                         {"h200x2_multicast", PlatformKind::kCuda, 2, true},
                                         {"h200x4", PlatformKind::kCuda, 4, false},
                                         {"h200x4_multicast", PlatformKind::kCuda, 4, true},
                                         {"h200x8", PlatformKind::kCuda, 8, false},
                                         {"h200x8_multicast", PlatformKind::kCuda, 8, true},
                                         {"gb200x72_multicast", PlatformKind::kCuda, 72, true}}));
  CAPTURE(row.name);
  const auto topology = topology::load(fixture(row.name));
  INFO(topology.status().message());
  REQUIRE(topology.ok());
  CHECK(topology.value().platform == row.platform);
  CHECK(topology.value().gpus.size() == row.gpus);
  CHECK(topology.value().multicast() == row.multicast);
}

TEST_CASE("a wrong recording is refused with the place and what is allowed", "[unit][topology]") {
  struct Row {
    std::string text, message;
  };
  const auto row = GENERATE(values<Row>({
      {"", "line 1, column 1: unexpected end"},
      {"{", "unexpected end"},
      {"{\n  \"schema\": 1,,\n", "line 2, column 15"},
      {"[]", "m is an array; allowed an object"},
      {"{}", "\"schema\" is missing"},
      {R"({"schema": 2, "platform": "host"})", "m: schema is 2; allowed a whole number 1..1"},
      {R"({"schema": 1.0, "platform": "host"})", "schema is 1.0; allowed a whole number"},
      {R"({"schema": 1})", "\"platform\" is missing"},
      {R"({"schema": 1, "platform": "Host"})", "platform is \"Host\"; allowed \"host\", \"cuda\""},
      {R"({"schema": 1, "platform": "host", "core": 2})", "\"core\" is unknown, the nearest is \"cores\""},
      {R"({"schema": 1, "platform": "host", "cores": 0})", "cores is 0; allowed a whole number 1.."},
      {R"({"schema": 1, "platform": "host", "cores": 99999999999999999999})",
       "cores is 99999999999999999999"},
      {R"({"schema": 1, "platform": "host", "cores": "2"})", "cores is \"2\""},
      {R"({"schema": 1, "schema": 1, "platform": "host"})", "duplicate key \"schema\""},
      {R"({"schema": 1, "platform": "host", "numa_nodes": {}})", "numa_nodes is an object; allowed an array"},
      {R"({"schema": 1, "platform": "host", "numa_nodes": [{"cores": -1}]})", "numa_nodes[0].cores is -1"},
      {R"({"schema": 1, "platform": "cuda"})", "without \"gpus\""},
      {R"({"schema": 1, "platform": "cuda", "gpus": [{"sms": 1}]})", "gpus[0]: \"name\" is missing"},
      {R"({"schema": 1, "platform": "cuda", "gpus": [{"name": "x", "multicast": 1}]})",
       "multicast is 1; allowed true"},
      {R"({"schema": 1, "platform": "cuda", "gpus": [{"name": "x", "count": 4096}, {"name": "y"}]})",
       "more than 4096"},
      {"{\"schema\": 1, \"platform\": \"host\", \"machine\": \"\xff\"}", "line 1, column"},
      {R"({"schema": 1, "platform": "host"} x)", "unexpected"},
  }));
  CAPTURE(row.text);
  const auto topology = topology::parse(row.text, "m");
  REQUIRE_FALSE(topology.ok());
  CHECK(topology.status().code() == pkcommInvalidArgument);
  CHECK_THAT(topology.status().message(), contains_text(row.message));
}

TEST_CASE("a text nested without end is refused and not followed", "[unit][topology]") {
  const auto arrays = topology::parse(std::string(1000000, '['), "m");
  REQUIRE_FALSE(arrays.ok());
  CHECK_THAT(arrays.status().message(), contains_text("nested deeper than 32 levels"));
}

TEST_CASE("an unreadable recording is named with the system's reason", "[unit][topology]") {
  CHECK_THAT(topology::load("/nonexistent/machine.json").status().message(),
             contains_text("/nonexistent/machine.json\": No such file"));
  CHECK_THAT(topology::load("/").status().message(), contains_text("Is a directory"));
}

TEST_CASE("a recording with bytes changed, dropped or doubled is read or refused, never worse",
          "[unit][topology]") {
  const auto original = json::read_file(fixture("h200x8"));
  REQUIRE(original.ok());
  std::mt19937 random(20261129);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = original.value();
    for (unsigned edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 16));
          break;
        default:
          text[at] = "{}[]\",:0123456789-eE."[random() % 21];
          break;
      }
    }
    const auto topology = topology::parse(text, "m");
    if (topology.ok()) {
      ++accepted;
    } else if (topology.status().message().rfind("m", 0) != 0) {
      FAIL("the message does not begin with the source: " << topology.status().message());
    }
  }
  CHECK(accepted > 0);  // some edits only touch names
}

}  // namespace
}  // namespace pkcomm
