// pkcomm-perf: how sizes are read, and which sizes a sweep visits.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pkcomm-perf/sizes.hpp"
#include "support/catch.hpp"

using namespace pkcomm::perf;
using pkcomm::test::contains_text;

TEST_CASE("C46 pkcomm-perf reads sizes to the last letter or refuses them", "[unit][perf]") {
  struct Row {
    const char* text;
    std::optional<std::uint64_t> bytes;
  };
  const auto row = GENERATE(values<Row>({
      {"0", 0},
      {"6", 6},
      {"64M", 67108864},
      {"1k", 1024},
      {"1K", 1024},
      {"1.5K", 1536},
      {"1.50K", 1536},
      {"1.5m", 1572864},
      {"4G", 4294967296},
      {"2t", 2199023255552},
      {"0.000001T", std::nullopt},  // 1099511.627776 bytes
      {"0.25K", 256},
      {"8388607T", 9223370937343148032},
      {"8388608T", std::nullopt},
      {"9223372036854775807", 9223372036854775807},
      {"9223372036854775808", std::nullopt},
      {"18446744073709551616", std::nullopt},
      {"99999999999G", std::nullopt},
      {"1.5", std::nullopt},
      {"1.0000001M", std::nullopt},
      {"", std::nullopt},
      {"K", std::nullopt},
      {".5K", std::nullopt},
      {"1.K", std::nullopt},
      {"1KB", std::nullopt},
      {"1KiB", std::nullopt},
      {"10X", std::nullopt},
      {"-1", std::nullopt},
      {"+1", std::nullopt},
      {" 1", std::nullopt},
      {"1 ", std::nullopt},
      {"1 K", std::nullopt},
      {"1e3", std::nullopt},
      {"0x10", std::nullopt},
      {"1,5K", std::nullopt},
      {"nan", std::nullopt},
      {"1KK", std::nullopt},
  }));
  CAPTURE(row.text);
  const Result<std::size_t> size = parse_size(row.text);
  REQUIRE(size.ok() == row.bytes.has_value());
  if (row.bytes) {
    CHECK(size.value() == *row.bytes);
  } else {
    CHECK_THAT(size.error().text, contains_text("'" + std::string(row.text) + "'"));
  }
}

TEST_CASE("C46 a pkcomm-perf sweep adds the step or multiplies by the factor", "[unit][perf]") {
  struct Row {
    const char* why;
    SizeSweep sweep;
    std::vector<std::size_t> expected;
  };
  const auto row = GENERATE(values<Row>({
      {"step", {64u << 20, 70u << 20, 2u << 20, 0}, {67108864, 69206016, 71303168, 73400320}},
      {"factor", {1024, 10240, 1u << 20, 3}, {1024, 3072, 9216}},
      {"factor 1 means the step", {8, 10, 1, 1}, {8, 9, 10}},
      {"one size, no step", {8, 8, 0, 0}, {8}},
      {"no overflow", {kMostBytes, SIZE_MAX, kMostBytes, 4}, {kMostBytes}},
  }));
  CAPTURE(row.why);
  CHECK_FALSE(row.sweep.fault().has_value());
  std::vector<std::size_t> visited;
  for (std::optional<std::size_t> size = row.sweep.least; size; size = row.sweep.after(*size)) {
    visited.push_back(*size);
  }
  CHECK(visited == row.expected);
}

TEST_CASE("C46 a pkcomm-perf sweep that leads nowhere is refused", "[unit][perf]") {
  CHECK(SizeSweep{1u << 30, 1u << 20, 1u << 20, 0}.fault().has_value());
  CHECK(SizeSweep{8, 16, 0, 0}.fault().has_value());
  CHECK(SizeSweep{0, 16, 1, 2}.fault().has_value());
}

TEST_CASE("sizes in words are short", "[unit][perf]") {
  CHECK(in_words(0) == "0 B");
  CHECK(in_words(1000) == "1000 B");
  CHECK(in_words(1536) == "1.5 KiB");
  CHECK(in_words(64u << 20) == "64 MiB");
}
