// pkcomm-perf: the expected results of the data check, against values worked out by hand, and what the check
// notices.
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "pkcomm-perf/pattern.hpp"
#include "pkcomm-perf/rounding.hpp"
#include "pkcomm-perf/segments.hpp"
#include "support/catch.hpp"

using namespace pkcomm::perf;

TEST_CASE("numbers are rounded to nearest, ties to even, once", "[unit][perf]") {
  struct Row {
    pkcommDataType_t type;
    double value;
    std::uint64_t bits;
  };
  const auto row = GENERATE(values<Row>({
      {pkcommFloat16, 1.0, 0x3C00},
      {pkcommFloat16, -2.0, 0xC000},
      {pkcommFloat16, 2049.0, 0x6800},   // half way between 2048 and 2050: to even
      {pkcommFloat16, 2051.0, 0x6802},   // between 2050 and 2052
      {pkcommFloat16, 65504.0, 0x7BFF},  // the largest
      {pkcommFloat16, 65519.9, 0x7BFF},  // below the middle of 65504 and 65536
      {pkcommFloat16, 65520.0, 0x7C00},  // infinite
      {pkcommFloat16, 0x1p-24, 0x0001},  // the smallest subnormal
      {pkcommFloat16, 0x1p-25, 0x0000},  // half of it: to even
      {pkcommFloat16, 0x1.8p-25, 0x0001},
      {pkcommFloat16, 0x1p-14, 0x0400},  // the smallest normal
      {pkcommFloat16, -0.0, 0x8000},
      {pkcommBfloat16, 257.0, 0x4380},  // 8 bits of significand: to 256
      {pkcommBfloat16, 259.0, 0x4382},  // to 260
      {pkcommBfloat16, 3.0, 0x4040},
      {pkcommFloat8e4m3, 448.0, 0x7E},  // the largest
      {pkcommFloat8e4m3, 1e6, 0x7E},    // saturates
      {pkcommFloat8e4m3, -1e6, 0xFE},
      {pkcommFloat8e4m3, 17.0, 0x58},  // half way between 16 and 18: to even
      {pkcommFloat8e4m3, 0x1p-9, 0x01},
      {pkcommFloat8e5m2, 57344.0, 0x7B},
      {pkcommFloat8e5m2, 1e9, 0x7B},
      {pkcommFloat8e5m2, 9.0, 0x48},  // half way between 8 and 10: to even
      {pkcommFloat32, 1.5, 0x3FC00000},
      {pkcommFloat64, 1.5, 0x3FF8000000000000},
  }));
  CAPTURE(row.type, row.value);
  CHECK(round_to_bits(row.value, row.type) == row.bits);
}

TEST_CASE("every number of a small format comes back from its value", "[unit][perf]") {
  // e4m3 by its definition: sign, exponent biased by 7, three bits of fraction.
  for (std::uint64_t bits = 0; bits < 0x7F; ++bits) {
    const int exponent = static_cast<int>(bits >> 3);
    const double fraction = static_cast<double>(bits & 7) / 8;
    const double value = exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
    CHECK(round_to_bits(value, pkcommFloat8e4m3) == bits);
  }
}

namespace {

double as_float(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }

}  // namespace

TEST_CASE("expected reductions agree with a loop in the type itself", "[unit][perf]") {
  const Op op = GENERATE(Op::kSum, Op::kProd, Op::kMax, Op::kMin, Op::kAvg, Op::kMulSum);
  const int nranks = GENERATE(1, 2, 3, 8, 72);
  const PatternSpec floats{pkcommFloat32, true, op, nranks, 5};
  const PatternSpec bytes{pkcommInt8, true, op, nranks, 5};
  CAPTURE(name(op), nranks);
  for (const std::size_t position :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kPeriod - 1, kPeriod + 3}) {
    float x = 0;
    auto y = std::int8_t{0};
    for (int rank = 0; rank < nranks; ++rank) {
      auto a = static_cast<float>(as_float(input_bits(floats, rank, position)));
      auto b = static_cast<std::int8_t>(input_bits(bytes, rank, position));
      if (op == Op::kMulSum) {
        a *= static_cast<float>(as_float(scalar_bits(floats, rank)));
        b = static_cast<std::int8_t>(b * static_cast<int>(scalar_bits(bytes, rank)));
      }
      if (rank == 0) {
        x = a;
        y = b;
      } else if (op == Op::kProd) {
        x *= a;
        y = static_cast<std::int8_t>(y * b);
      } else if (op == Op::kMax) {
        x = std::max(x, a);
        y = std::max(y, b);
      } else if (op == Op::kMin) {
        x = std::min(x, a);
        y = std::min(y, b);
      } else {
        x += a;
        y = static_cast<std::int8_t>(y + b);
      }
    }
    if (op == Op::kAvg) {
      x /= static_cast<float>(nranks);
      y = static_cast<std::int8_t>(y / nranks);
    }
    CHECK(as_float(reduced_bits(floats, position)) == x);
    CHECK(reduced_bits(bytes, position) == static_cast<std::uint8_t>(y));
  }
}

TEST_CASE("inputs depend on rank, position and seed and are exact in every type", "[unit][perf]") {
  for (const DataType& type : kDataTypes) {
    CAPTURE(type.name);
    const PatternSpec spec{type.value, true, Op::kSum, 8, 1};
    PatternSpec later = spec;
    later.seed = 2;
    std::size_t other_rank = 0;
    std::size_t other_seed = 0;
    std::size_t next = 0;
    std::size_t same_after_period = 0;
    constexpr std::size_t kTried = 500;
    for (std::size_t i = 0; i < kTried; ++i) {
      const std::uint64_t bits = input_bits(spec, 0, i);
      other_rank += bits != input_bits(spec, 1, i) ? 1 : 0;
      other_seed += bits != input_bits(later, 0, i) ? 1 : 0;
      next += bits != input_bits(spec, 0, i + 1) ? 1 : 0;
      same_after_period += bits == input_bits(spec, 0, i + kPeriod) ? 1 : 0;
      if (type.is_float) CHECK(std::abs(input_number(spec, 0, i)) <= static_cast<double>(number_limit(spec)));
    }
    CHECK(other_rank > kTried / 2);
    CHECK(other_seed > kTried / 2);
    CHECK(next > kTried / 2);
    CHECK(same_after_period == kTried);
  }
}

TEST_CASE("products of many ranks stay finite and are not all alike", "[unit][perf]") {
  const PatternSpec spec{pkcommFloat32, true, Op::kProd, 1024, 1};
  std::set<double> seen;
  for (std::size_t i = 0; i < 200; ++i) {
    const double product = as_float(reduced_bits(spec, i));
    CHECK(std::isfinite(product));
    CHECK(product != 0);
    seen.insert(product);
  }
  CHECK(seen.size() > 4);
}

TEST_CASE("a table finds one flipped bit, wherever it is", "[unit][perf]") {
  const PatternSpec spec{pkcommBfloat16, false, Op::kSum, 2, 9};
  const std::size_t count = 2 * kPeriod + 100;
  const std::size_t first = 77;
  const PatternTable table = PatternTable::of_input(spec, 1, first + count);
  std::vector<std::byte> data(count * 2);
  table.fill(data.data(), first, count);
  CHECK(table.differences(data.data(), first, count) == 0);
  for (const std::size_t element : {std::size_t{0}, kPeriod - first, count - 1}) {
    data[element * 2 + 1] ^= std::byte{1};
    CHECK(table.differences(data.data(), first, count) == 1);
    data[element * 2 + 1] ^= std::byte{1};
  }
  CHECK(table.differences(data.data(), first + 1, count - 1) > count / 2);
}

TEST_CASE("laying an output over a buffer keeps what lay beside it", "[unit][perf]") {
  std::vector<Segment> image = {{Segment::kPoison, 0, 100, 0, 0}};
  overlay(image, {Segment::kInput, 20, 60, 3, 0});
  overlay(image, {Segment::kResult, 40, 10, 0, 7});
  overlay(image, {Segment::kResult, 50, 0, 0, 0});
  REQUIRE(image.size() == 5);
  const auto is = [&](std::size_t i, Segment::Kind kind, std::size_t at, std::size_t count,
                      std::size_t start) {
    return image[i].kind == kind && image[i].at == at && image[i].count == count && image[i].first == start;
  };
  CHECK(is(0, Segment::kPoison, 0, 20, 0));
  CHECK(is(1, Segment::kInput, 20, 20, 0));
  CHECK(is(2, Segment::kResult, 40, 10, 7));
  CHECK(is(3, Segment::kInput, 50, 30, 30));
  CHECK(is(4, Segment::kPoison, 80, 20, 80));
  overlay(image, {Segment::kInput, 0, 100, 1, 0});
  REQUIRE(image.size() == 1);
  CHECK(is(0, Segment::kInput, 0, 100, 0));
}
