// base/text.hpp: each reader against a table of what it takes and what it refuses.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "support/catch.hpp"

using namespace pkcomm;
using namespace std::chrono_literals;
using pkcomm::test::contains_text;

TEST_CASE("parse_bytes takes whole sizes and nothing else", "[base][text]") {
  struct Row {
    std::string_view text;
    std::optional<std::uint64_t> bytes;
  };
  const auto row = GENERATE(values<Row>({
      {"0", 0},
      {"1", 1},
      {"7", 7},
      {"480", 480},
      {"1000000", 1000000},
      {"4K", 4096},
      {"4k", 4096},
      {"1.5K", 1536},
      {"1.5M", 1572864},
      {"0.25G", 268435456},
      {"1.0", 1},
      {"1.50", std::nullopt},
      {"1T", std::uint64_t{1} << 40},
      {"007", 7},
      {"0.0009765625K", 1},
      {"0.0009765625000K", 1},
      {"2147483648", std::uint64_t{1} << 31},
      {"9223372036854775808", std::uint64_t{1} << 63},
      {"18446744073709551615", UINT64_MAX},
      {"18446744073709551616", std::nullopt},
      {"16777216T", std::nullopt},
      {"16777215.5T", UINT64_MAX - (std::uint64_t{1} << 39) + 1},
      {"99999999999G", std::nullopt},
      {"0.1K", std::nullopt},
      {"1.3K", std::nullopt},
      {"0.00000000000000000001T", std::nullopt},
      {"", std::nullopt},
      {"K", std::nullopt},
      {".5K", std::nullopt},
      {"1.K", std::nullopt},
      {"1..5K", std::nullopt},
      {"-1", std::nullopt},
      {"+1", std::nullopt},
      {"1e3", std::nullopt},
      {"4KB", std::nullopt},
      {"4KiB", std::nullopt},
      {"4KK", std::nullopt},
      {"12X", std::nullopt},
      {"0x10", std::nullopt},
      {"1,5K", std::nullopt},
      {"abc", std::nullopt},
      {" 8 ", std::nullopt},
      {"8 ", std::nullopt},
      {"8\n", std::nullopt},
      {"12\r", std::nullopt},
      {"12+", std::nullopt},
  }));
  CAPTURE(row.text);
  const Result<std::uint64_t> read = parse_bytes(row.text);
  REQUIRE(read.ok() == row.bytes.has_value());
  if (row.bytes) {
    CHECK(read.value() == *row.bytes);
  } else {
    CHECK(read.status().code() == pkcommInvalidArgument);
    CHECK_THAT(read.status().message(), contains_text("\"" + std::string(row.text) + "\""));
  }
}

TEST_CASE("no single character after a number is taken for a suffix except the four", "[base][text]") {
  for (int c = 1; c < 256; ++c) {
    const std::string text = std::string("3") + static_cast<char>(c);
    const bool suffix = std::string_view("KMGTkmgt").find(static_cast<char>(c)) != std::string_view::npos;
    const bool digit = c >= '0' && c <= '9';
    CAPTURE(c, text);
    CHECK(parse_bytes(text).ok() == (suffix || digit));
  }
}

TEST_CASE("format_bytes is read back as the same size", "[base][text]") {
  struct Row {
    std::uint64_t bytes;
    std::string_view text;
  };
  const auto row = GENERATE(values<Row>({
      {0, "0"},
      {1, "1"},
      {1023, "1023"},
      {1024, "1K"},
      {1536, "1.5K"},
      {1280, "1280"},
      {1000000, "1000000"},
      {67108864, "64M"},
      {std::uint64_t{5} << 38, "1.25T"},
      {std::uint64_t{1} << 63, "8388608T"},
      {UINT64_MAX, "18446744073709551615"},
  }));
  CAPTURE(row.bytes);
  CHECK(parse_bytes(format_bytes(row.bytes)).value() == row.bytes);
  if (row.bytes != 1280) CHECK(format_bytes(row.bytes) == row.text);
}

TEST_CASE("parse_integer takes 64-bit integers and nothing else", "[base][text]") {
  CHECK(parse_integer("0").value() == 0);
  CHECK(parse_integer("-12").value() == -12);
  CHECK(parse_integer("9223372036854775807").value() == INT64_MAX);
  CHECK(parse_integer("-9223372036854775808").value() == INT64_MIN);
  for (const std::string_view text :
       {"", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "abc", "4K", "9223372036854775808", "--1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_integer(text).ok());
  }
}

TEST_CASE("parse_seconds reads to the millisecond", "[base][text]") {
  CHECK(parse_seconds("60").value() == 60s);
  CHECK(parse_seconds("0.25").value() == 250ms);
  CHECK(parse_seconds("0").value() == 0ms);
  for (const std::string_view text : {"", "-1", "1s", "0.0001", "1e3", ".5", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_seconds(text).ok());
  }
}

TEST_CASE("split trims its parts and keeps empty ones", "[base][text]") {
  CHECK(split("a, b ,,c", ',') == std::vector<std::string_view>{"a", "b", "", "c"});
  CHECK(split("", ',') == std::vector<std::string_view>{""});
  CHECK(join(split("a|b", '|'), ", ") == "a, b");
  CHECK(trim(" \t x y\t ") == "x y");
  CHECK(trim("  ").empty());
  CHECK(lower_case("One_SHOT_8") == "one_shot_8");
}

TEST_CASE("nearest_name finds the cut-off and the mistyped", "[base][text]") {
  constexpr std::array<std::string_view, 4> kNames = {"one_shot_ll", "two_shot_ll", "direct_ldst",
                                                      "copy_engine"};
  CHECK(nearest_name("one_shot", kNames) == "one_shot_ll");
  CHECK(nearest_name("oen_shot_ll", kNames) == "one_shot_ll");
  CHECK(nearest_name("copy_engin", kNames) == "copy_engine");
  CHECK(nearest_name("direct", kNames) == "direct_ldst");
  CHECK(nearest_name("x", {}).empty());
}
