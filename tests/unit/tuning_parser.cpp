// The reader of tuning tables against wrong texts, by table and by chance.
#include <random>
#include <string>

#include "dispatch/tables/tables.hpp"
#include "dispatch/tuning.hpp"
#include "support/catch.hpp"

namespace pkcomm::dispatch {
namespace {

// A table that would be right, with `curve` in place of its only curve.
std::string with_curve(const std::string& curve) {
  return R"({"schema": 1, "machine": {"platform": "host"}, "curves": [)" + curve + "]}";
}
std::string with_lines(const std::string& lines) {
  return with_curve(
      R"({"collectives": ["all_reduce"], "algorithms": ["one_shot_ll"], "paths": ["staged"], "lines": )" +
      lines + "}");
}

TEST_CASE("a wrong tuning table is refused with the place and what is allowed", "[unit][tuning]") {
  struct Row {
    std::string text, message;
  };
  const auto row = GENERATE(values<Row>({
      {"", "t: line 1, column 1: unexpected end"},
      {"nonsense", "t: line 1, column"},
      {"null", "t is null; allowed an object"},
      {"{}", "\"schema\" is missing"},
      {R"({"schema": 2})", "schema is 2; allowed a whole number 1..1"},
      {R"({"schema": 1})", "\"machine\" is missing"},
      {R"({"schema": 1, "machine": {}, "curve": []})", "\"curve\" is unknown, the nearest is \"curves\""},
      {R"({"schema": 1, "machine": {"system": ""}})", "machine: \"system\" is unknown"},
      {R"({"schema": 1, "machine": {}})", "\"curves\" is missing"},
      {R"({"schema": 1, "machine": {}, "cta_price_ppm": -1, "curves": []})", "cta_price_ppm is -1; allowed"},
      {with_curve("7"), "curves[0] is 7; allowed an object"},
      {with_curve("{}"), "curves[0]: \"collectives\" is missing"},
      {with_curve(R"({"collectives": []})"), "needs at least one of all_reduce"},
      {with_curve(R"({"collectives": ["allreduce"]})"),
       "collectives[0] is \"allreduce\"; allowed all_reduce, reduce"},
      {with_curve(R"({"collectives": ["barrier"], "algorithms": ["ring"]})"),
       "is \"ring\"; allowed one_shot_ll"},
      {with_curve(R"({"collectives": ["barrier"], "algorithms": ["pairwise"], "paths": ["staged"]})"),
       "pairwise does not do barrier"},
      {with_curve(R"({"collectives": ["all_reduce"], "algorithms": ["multimem"], "paths": ["staged"]})"),
       "multimem is never staged"},
      {with_curve(
           R"({"collectives": ["all_reduce"], "algorithms": ["one_shot_ll"], "paths": ["zero_copy"]})"),
       "one_shot_ll is never zero_copy"},
      {with_curve(
           R"({"collectives": ["barrier"], "algorithms": ["one_shot_ll"], "paths": ["staged"], "threads": 0})"),
       "threads is 0; allowed a whole number 1..1024"},
      {with_curve(
           R"({"collectives": ["barrier"], "algorithms": ["one_shot_ll"], "paths": ["staged"], "nranks": 1e3})"),
       "nranks is 1e3; allowed a whole number"},
      {with_lines("[]"), "no line starts from byte 0"},
      {with_lines("[{}]"), "lines[0]: \"ctas\" is missing"},
      {with_lines(R"([{"ctas": 65, "alpha_ns": 1, "bytes_per_us": 1}])"),
       "ctas is 65; allowed a whole number 0..64"},
      {with_lines(R"([{"ctas": 1, "alpha_ns": 1, "bytes_per_us": 0}])"), "bytes_per_us is 0; allowed"},
      {with_lines(R"([{"ctas": 1, "alpha_ns": 1, "bytes_per_us": 18446744073709551616}])"),
       "bytes_per_us is 18446744073709551616; allowed"},
      {with_lines(R"([{"from_bytes": 8, "ctas": 1, "alpha_ns": 1, "bytes_per_us": 1}])"),
       "no line starts from byte 0"},
      {with_lines(
           R"([{"ctas": 1, "alpha_ns": 1, "bytes_per_us": 1}, {"ctas": 1, "alpha_ns": 2, "bytes_per_us": 1}])"),
       "two lines have 1 CTAs from byte 0"},
  }));
  CAPTURE(row.text);
  Result<Tuning> tuning = Tuning::builtin(Topology{});
  REQUIRE(tuning.ok());
  const std::uint64_t before = tuning.value().hash();
  const Status status = tuning.value().overlay(row.text, "t", Topology{});
  CHECK(status.code() == pkcommInvalidArgument);
  CHECK_THAT(status.message(), test::contains_text(row.message));
  CHECK(tuning.value().hash() == before);
}

TEST_CASE("a table with bytes changed, dropped or doubled is read or refused, never worse",
          "[unit][tuning]") {
  const std::string original(builtin_tables().front().json);
  std::mt19937 random(5);
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string text = original;
    for (unsigned edits = 1 + random() % 3; edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 32);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 64));
          break;
        default:
          text[at] = "{}[]\",:0123456789-eE."[random() % 21];
          break;
      }
    }
    Tuning tuning;
    if (tuning.overlay(text, "t", Topology{}).ok()) ++accepted;
  }
  CHECK(accepted > 0);
  CHECK(accepted < 1500);
}

}  // namespace
}  // namespace pkcomm::dispatch
