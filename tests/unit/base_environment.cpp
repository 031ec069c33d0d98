// base/environment.hpp: the table, each kind of variable with odd values (C40), misspelt names (C41). Values are set
// with setenv() in this process; every ctest entry is a process of its own.
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"

using namespace pkcomm;
using namespace pkcomm::environment;
using namespace std::chrono_literals;
using pkcomm::test::contains_text;

namespace {

/// Sets a variable for one scope.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

std::string complaint(Var var, const char* value) {
  const Setting setting(describe(var).name.data(), value);
  return read(var).complaint;
}

}  // namespace

TEST_CASE("every row of the table is complete and its default is allowed", "[base][environment]") {
  for (const Description& row : kTable) {
    CAPTURE(row.name);
    CHECK(row.name.starts_with("PKCOMM_"));
    CHECK(row.name.data()[row.name.size()] == '\0');  // getenv() takes it as it is
    CHECK_FALSE(row.meaning.empty());
    CHECK(row.least <= row.most);
    if (!row.fallback.empty()) CHECK(parse(row, row.fallback).ok());
    CHECK_THAT(help(), contains_text(std::string(row.name) + "\n"));
  }
}

TEST_CASE("unset variables have their defaults", "[base][environment]") {
  CHECK(get<Var::kPlatform>() == PlatformChoice::kAuto);
  CHECK(get<Var::kMulticast>() == MulticastChoice::kAuto);
  CHECK(get<Var::kLog>() == LogLevel::kWarn);
  CHECK(get<Var::kStaging>() == 64u << 20);
  CHECK(get<Var::kHeapSize>() == std::uint64_t{16} << 30);
  CHECK(get<Var::kTimeout>() == 1800s);
  CHECK(get<Var::kInitTimeout>() == 60s);
  CHECK_FALSE(get_if_set<Var::kChunk>().has_value());
  CHECK_FALSE(get_if_set<Var::kMaxCtas>().has_value());
  CHECK_FALSE(get_if_set<Var::kTuning>().has_value());
}

TEST_CASE("set variables are read by their kind", "[base][environment]") {
  const Setting settings[] = {{"PKCOMM_PLATFORM", "Host"},       {"PKCOMM_STAGING", "1.5M"},
                              {"PKCOMM_MAX_CTAS", "32"},         {"PKCOMM_TIMEOUT", "0.5"},
                              {"PKCOMM_SOCKET_IFNAME", "^lo"},   {"PKCOMM_TUNING", ""},
                              {"PKCOMM_HOST_SEED", "123456789"}, {"PKCOMM_MULTICAST", "REQUIRE"}};
  CHECK(get<Var::kPlatform>() == PlatformChoice::kHost);
  CHECK(get<Var::kStaging>() == 1572864);
  CHECK(get_if_set<Var::kMaxCtas>() == 32);
  CHECK(get<Var::kTimeout>() == 500ms);
  CHECK(get_if_set<Var::kSocketIfname>() == "^lo");
  CHECK_FALSE(get_if_set<Var::kTuning>().has_value());
  CHECK(get_if_set<Var::kHostSeed>() == 123456789);
  CHECK(get<Var::kMulticast>() == MulticastChoice::kRequire);
}

TEST_CASE("C40: an odd value is used as it stands or refused with name, value and range",
          "[base][environment][C40]") {
  const auto value =
      GENERATE(values<const char*>({"0", "-1", "1", "7", "480", "1000000", "2147483648",
                                    "9223372036854775808", "1e3", "4K", "4KB", "abc", "", " 8 "}));
  for (const Description& row : kTable) {
    if (row.kind != Kind::kBytes && row.kind != Kind::kInteger && row.kind != Kind::kSeconds) continue;
    CAPTURE(row.name, value);
    const Setting setting(row.name.data(), value);
    const Reading reading = read(row.var);
    REQUIRE(reading.value.has_value() == reading.complaint.empty());
    if (reading.value) {
      CHECK(reading.value->number >= row.least);
      CHECK(reading.value->number <= row.most);
    } else {
      CHECK_THAT(reading.complaint, contains_text(std::string(row.name) + "=\"" + value + "\": "));
      CHECK_THAT(reading.complaint, contains_text("; allowed "));
      CHECK(reading.complaint.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("C40: complaints say what holds instead", "[base][environment][C40]") {
  CHECK(complaint(Var::kStaging, "12X") ==
        "PKCOMM_STAGING=\"12X\": not a size; allowed 1M..64G bytes, like 64M; using 64M");
  CHECK(complaint(Var::kStaging, "1000000") ==
        "PKCOMM_STAGING=\"1000000\": below the least; allowed 1M..64G bytes, like 64M; using 64M");
  CHECK(complaint(Var::kStaging, "9223372036854775808") ==
        "PKCOMM_STAGING=\"9223372036854775808\": above the most; allowed 1M..64G bytes, like 64M; using 64M");
  CHECK(complaint(Var::kMaxCtas, "480") == "PKCOMM_MAX_CTAS=\"480\": above the most; allowed 1..64; ignored");
  CHECK(complaint(Var::kMaxCtas, "4K") ==
        "PKCOMM_MAX_CTAS=\"4K\": not a whole number; allowed 1..64; ignored");
  CHECK(complaint(Var::kInitTimeout, "0") ==
        "PKCOMM_INIT_TIMEOUT=\"0\": below the least; allowed 0.001..31536000 seconds; using 60");
  CHECK(complaint(Var::kPlatform, "cudda") ==
        "PKCOMM_PLATFORM=\"cudda\": unknown, nearest is cuda; allowed auto, cuda, host; using auto");
}

TEST_CASE("a bad value is as good as unset", "[base][environment]") {
  const Setting staging("PKCOMM_STAGING", "lots");
  const Setting ctas("PKCOMM_MAX_CTAS", "0");
  CHECK(get<Var::kStaging>() == 64u << 20);
  CHECK_FALSE(get_if_set<Var::kMaxCtas>().has_value());
}

TEST_CASE("C41: rules name collectives, allow or deny, in any case", "[base][environment][C41]") {
  const auto one = parse_rules("One_Shot_LL, two_shot_ll");
  REQUIRE(one.ok());
  REQUIRE(one.value().size() == 1);
  CHECK(one.value()[0].collective.empty());
  CHECK_FALSE(one.value()[0].deny);
  CHECK(one.value()[0].names == std::vector<std::string>{"one_shot_ll", "two_shot_ll"});

  const auto two = parse_rules("all_reduce:one_shot_ll,two_shot_ll; Broadcast : ^copy_engine,^direct_tma;");
  REQUIRE(two.ok());
  REQUIRE(two.value().size() == 2);
  CHECK(two.value()[0].collective == "all_reduce");
  CHECK(two.value()[1].collective == "broadcast");
  CHECK(two.value()[1].deny);
  CHECK(two.value()[1].names == std::vector<std::string>{"copy_engine", "direct_tma"});

  CHECK(parse_rules("^multimem,copy_engine").value()[0].names.size() == 2);
  CHECK(parse_rules("").value().empty());
  for (const char* bad : {"a,^b", "a,,b", "^", ":a", "all reduce:a", "a:b:c", "a;b c", "^^a", "a=b", ","}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_rules(bad).ok());
  }
}

TEST_CASE("C41: a malformed list is refused whole", "[base][environment][C41]") {
  CHECK_THAT(complaint(Var::kAlgorithm, "one_shot_ll,^copy_engine"),
             contains_text("mixes allowed and denied names; allowed [collective:][^]name,name;...; ignored"));
  const Setting empty("PKCOMM_MECHANISM", "");
  CHECK_FALSE(get_if_set<Var::kMechanism>().has_value());
}

TEST_CASE("C41: a misspelt variable is told the nearest", "[base][environment][C41]") {
  struct Row {
    std::string_view misspelt;
    std::string_view meant;
  };
  const auto row = GENERATE(values<Row>({
      {"PKCOMM_ALGOS", "PKCOMM_ALGORITHM"},
      {"PKCOMM_ALGO", "PKCOMM_ALGORITHM"},
      {"PKCOM_DEBUG", "PKCOMM_LOG"},
      {"PKCOMM_LOGFILE", "PKCOMM_LOG_FILE"},
      {"PKCOMM_STAGEING", "PKCOMM_STAGING"},
      {"PKCOMM_TIMEOUTS", "PKCOMM_TIMEOUT"},
      {"PKCOMM_MAX_CTA", "PKCOMM_MAX_CTAS"},
      {"PKCOM_PLATFORM", "PKCOMM_PLATFORM"},
      {"PKCOMM_PROTO", "PKCOMM_MECHANISM"},
      {"PKCOMM_HEAPSIZE", "PKCOMM_HEAP_SIZE"},
      {"PKCOMM_NVLS_ENABLE", "PKCOMM_MULTICAST"},
  }));
  CAPTURE(row.misspelt);
  CHECK(suggest_variable(row.misspelt) == row.meant);
}
