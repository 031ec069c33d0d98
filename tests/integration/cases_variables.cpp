// Variables with odd values and misspelt variables: used rightly, or refused in one line.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "crew.hpp"

using namespace pkcomm::test;

namespace {

/// Everything to the environment.
constexpr pkcommConfig_t kUnset = PKCOMM_CONFIG_INITIALIZER;

std::ptrdiff_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

constexpr std::array kValues = {
    "0",   "-1", "1",   "7",   "480", "1000000", "2147483648", "9223372036854775808",
    "1e3", "4K", "4KB", "abc", "",    " 8 "};

struct Variable {
  const char* name;
  std::vector<std::string> good;  // of kValues; the others are refused
};
const std::vector<Variable>& variables() {
  static const std::vector<Variable> all = {
      {"PKCOMM_STAGING", {"2147483648"}},
      {"PKCOMM_CHUNK", {"1000000", "4K"}},
      {"PKCOMM_MIN_CTAS", {"1", "7"}},
      {"PKCOMM_MAX_CTAS", {"1", "7"}},
      {"PKCOMM_HEAP_SIZE", {"1000000", "2147483648"}},
      {"PKCOMM_SPIN_US", {"0", "1", "7", "480", "1000000"}},
      {"PKCOMM_TIMEOUT", {"0", "1", "7", "480", "1000000"}},
      {"PKCOMM_INIT_TIMEOUT", {"1", "7", "480", "1000000"}},
  };
  return all;
}

/// What the communicator says that it uses.
void expect_used(Rank& self, const std::string& name, const std::string& value, bool good) {
  pkcommCommProperties_t properties = {};
  properties.size = sizeof properties;
  self.ok(pkcommCommGetProperties(self.comm, &properties), "properties");
  const auto equal = [&](std::size_t used, std::size_t otherwise) {
    const std::size_t wanted = good ? std::stoull(value) : otherwise;
    self.expect(used == wanted, "uses " + std::to_string(used) + " instead of " + std::to_string(wanted));
  };
  if (name == "PKCOMM_STAGING") equal(properties.staging_bytes, std::size_t{64} << 20);
  if (name == "PKCOMM_HEAP_SIZE") equal(properties.heap_limit_bytes, std::size_t{16} << 30);
}

}  // namespace

TEST_CASE("C40 an odd value is used and right, or refused with one line", "[integration][C40]") {
  for (const Variable& variable : variables()) {
    for (const std::string value : kValues) {
      CAPTURE(variable.name, value);
      const bool good = std::find(variable.good.begin(), variable.good.end(), value) != variable.good.end();
      // A process with a GPU takes a second to start, and what is refused is refused before there is a platform.
      if (on_cuda() && !good && value != "abc" && value != "-1") continue;
      Crew crew(Crew::kCaptured);
      crew.start(1, [&](int, Failures& failures) {
        ::setenv(variable.name, value.c_str(), 1);
        run_threads(
            2, failures,
            [&](Rank& self) {
              expect_float_sums(self, 2, "8 bytes");
              expect_float_sums(self, 1 << 18, "1 MiB");
              expect_used(self, variable.name, value, good);
            },
            kUnset);
      });
      const Crew::Ending ending = crew.wait(0);
      CHECK(ending.failures == "");
      CHECK(ending.code == 0);
      CHECK(ending.out == "");
      if (good) {
        CHECK(ending.err == "");
      } else {
        CHECK(lines_in(ending.err) == 1);
        CHECK_THAT(ending.err, contains_text(std::string(variable.name) + "=\"" + value + "\": "));
        CHECK_THAT(ending.err, contains_text("; allowed "));
        CHECK_THAT(ending.err, contains_text(".."));
      }
    }
  }
}

TEST_CASE("C40 odd values reduce 512 MiB rightly", "[integration][C40][slow]") {
  struct Row {
    const char* name;
    const char* value;
  };
  const auto row = GENERATE(values<Row>({{"PKCOMM_STAGING", "2147483648"},
                                         {"PKCOMM_STAGING", "1M"},
                                         {"PKCOMM_CHUNK", "4K"},
                                         {"PKCOMM_CHUNK", "1000000"},
                                         {"PKCOMM_MAX_CTAS", "1"},
                                         {"PKCOMM_MAX_CTAS", "7"},
                                         {"PKCOMM_MIN_CTAS", "7"},
                                         {"PKCOMM_SPIN_US", "0"}}));
  CAPTURE(row.name, row.value);
  Crew crew(Crew::kCaptured);
  crew.start(1, [&](int, Failures& failures) {
    ::setenv(row.name, row.value, 1);
    reserve_visible((std::size_t{2} << 30) + 4096);
    run_threads(
        2, failures, [](Rank& self) { expect_float_sums(self, std::size_t{128} << 20, "512 MiB"); }, kUnset);
  });
  const Crew::Ending ending = crew.wait(0);
  CHECK(ending.failures == "");
  CHECK(ending.code == 0);
  CHECK(ending.err == "");
}

namespace {

std::string chosen(Rank& self, pkcommCollective_t collective) {
  pkcommExplainRequest_t request = PKCOMM_EXPLAIN_REQUEST_INITIALIZER;
  request.collective = collective;
  request.count = 1024;
  pkcommExplanation_t explanation = {};
  explanation.size = sizeof explanation;
  self.ok(pkcommExplain(&request, self.comm, &explanation, nullptr, 0), "explain");
  return explanation.chosen >= 0 ? explanation.candidate[explanation.chosen].algorithm : "none";
}

}  // namespace

TEST_CASE("C41 misspelt variables and names are told, once, with what was meant", "[integration][C41]") {
  struct Row {
    const char* why;
    const char* name;
    const char* value;
    std::vector<std::string> line;  // parts of the one line; empty: nothing is said
    const char* all_reduce;         // the algorithm of all_reduce, or null: any
    const char* not_all_reduce;
  };
  const auto row = GENERATE(values<Row>({
      {"a name too many",
       "PKCOMM_ALGOS",
       "two_shot_ll",
       {"PKCOMM_ALGOS", "PKCOMM_ALGORITHM"},
       nullptr,
       nullptr},
      {"another library's name",
       "PKCOMM_ALGO",
       "two_shot_ll",
       {"PKCOMM_ALGO ", "PKCOMM_ALGORITHM"},
       nullptr,
       nullptr},
      {"a prefix misspelt", "PKCOM_DEBUG", "info", {"PKCOM_DEBUG", "PKCOMM_LOG"}, nullptr, nullptr},
      {"no such algorithm",
       "PKCOMM_ALGORITHM",
       "ring",
       {"PKCOMM_ALGORITHM", "\"ring\"",
        "allowed one_shot_ll, two_shot_ll, direct_ldst, direct_tma, copy_engine, multimem, "
        "multimem_emulated, pairwise"},
       nullptr,
       nullptr},
      {"no such collective",
       "PKCOMM_ALGORITHM",
       "allreduce:two_shot_ll",
       {"PKCOMM_ALGORITHM", "\"allreduce\"", "all_reduce"},
       nullptr,
       nullptr},
      {"a forbidden list", "PKCOMM_ALGORITHM", "^one_shot_ll,two_shot_ll", {}, nullptr, "one_shot_ll"},
      {"mixed case", "PKCOMM_ALGORITHM", "Two_Shot_LL", {}, "two_shot_ll", nullptr},
      {"for one collective", "PKCOMM_ALGORITHM", "all_reduce:direct_ldst", {}, "direct_ldst", nullptr},
      {"the shim's variables are its own matter", "PKCOMM_NCCL_ANYTHING", "1", {}, nullptr, nullptr},
  }));
  CAPTURE(row.why);
  Crew crew(Crew::kCaptured);
  crew.start(1, [&](int, Failures& failures) {
    ::setenv(row.name, row.value, 1);
    run_threads(2, failures, [&](Rank& self) {
      for (int i = 0; i < 3; ++i) expect_float_sums(self, 1024);
      const std::string algorithm = chosen(self, pkcommCollAllReduce);
      self.expect(row.all_reduce == nullptr || algorithm == row.all_reduce,
                  "all_reduce is done by " + algorithm);
      self.expect(row.not_all_reduce == nullptr || algorithm != row.not_all_reduce,
                  "all_reduce is done by " + algorithm);
      Visible<int> value{self.rank == 1 ? 77 : 0};
      self.ok(pkcommBroadcast(value.data(), value.data(), 1, pkcommInt32, 1, self.comm, self.stream),
              "broadcast");
      self.synchronize("broadcast");
      self.expect(value[0] == 77, "broadcast gave " + std::to_string(value[0]));
    });
  });
  const Crew::Ending ending = crew.wait(0);
  CAPTURE(ending.err);
  CHECK(ending.failures == "");
  CHECK(ending.code == 0);
  CHECK(lines_in(ending.err) == (row.line.empty() ? 0 : 1));
  for (const std::string& part : row.line) CHECK_THAT(ending.err, contains_text(part));
}

TEST_CASE("C41 a forced algorithm that a collective lacks gives way, and it is said once",
          "[integration][C41]") {
  Crew crew(Crew::kCaptured);
  crew.start(1, [&](int, Failures& failures) {
    ::setenv("PKCOMM_ALGORITHM", "two_shot_ll", 1);
    run_threads(2, failures, [](Rank& self) {
      expect_float_sums(self, 1024);
      for (int i = 0; i < 3; ++i) {
        const Visible<int> mine{self.rank + 5};
        Visible<int> all(2);
        self.ok(pkcommAllGather(mine.data(), all.data(), 1, pkcommInt32, self.comm, self.stream),
                "all_gather");
        self.synchronize("all_gather");
        self.expect(all[0] == 5 && all[1] == 6, "all_gather is wrong");
      }
    });
  });
  const Crew::Ending ending = crew.wait(0);
  CAPTURE(ending.err);
  CHECK(ending.failures == "");
  CHECK(lines_in(ending.err) == 1);
  CHECK_THAT(ending.err, contains_text("PKCOMM_ALGORITHM"));
  CHECK_THAT(ending.err, contains_text("all_gather"));
}
