// The conversions of numerics/float_formats.hpp against a decoder written from the definition of each format,
// over every value of the 16- and 8-bit types and every place where narrowing could round the wrong way.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "numerics/float_formats.hpp"
#include "support/catch.hpp"
#include "support/numerics_reference.hpp"

namespace pkcomm::test {
namespace {

template <class T>
T of_bits(std::size_t bits) {
  return T{static_cast<decltype(T::bits)>(bits)};
}

// Counts, as a check for each of millions of values would take minutes; the first wrong one is shown.
template <class T>
class NarrowingCheck {
 public:
  void operator()(float value) {
    const T expected = encode<T>(value);
    const T actual = numerics::from_float<T>(value);
    if (actual.bits == expected.bits) return;
    if (wrong_++ == 0)
      UNSCOPED_INFO("value " << value << " bits " << bit_cast<std::uint32_t>(value) << ": "
                             << int{actual.bits} << ", expected " << int{expected.bits});
  }
  int wrong() const { return wrong_; }

 private:
  int wrong_ = 0;
};

}  // namespace

TEMPLATE_TEST_CASE("widening a narrow float is exact, and narrowing it again gives the same bits",
                   "[unit][numerics]", Float16, Bfloat16, Float8E4M3, Float8E5M2) {
  int wrong_value = 0, wrong_bits = 0;
  for (std::size_t bits = 0; bits < std::size_t{1} << (8 * sizeof(TestType)); ++bits) {
    const auto narrow = of_bits<TestType>(bits);
    const float value = numerics::to_float(narrow);
    const double expected = decode(narrow);
    const bool nan = std::isnan(expected);
    wrong_value += nan ? !std::isnan(value) : static_cast<double>(value) != expected;
    wrong_value += std::signbit(value) != std::signbit(expected);
    const auto back = numerics::from_float<TestType>(value);
    if (nan) {
      wrong_bits += !std::isnan(decode(back));
    } else if (std::isinf(expected) && kLayout<TestType>.saturates) {
      wrong_bits += std::fabs(decode(back)) != finite_values<TestType>().back();
    } else {
      wrong_bits += back.bits != narrow.bits;
    }
  }
  CHECK(wrong_value == 0);
  CHECK(wrong_bits == 0);
}

TEMPLATE_TEST_CASE("narrowing gives the nearest value, ties to even", "[unit][numerics]", Float16, Bfloat16,
                   Float8E4M3, Float8E5M2) {
  NarrowingCheck<TestType> check;
  const auto around = [&check](double value) {
    const float middle = static_cast<float>(value);
    REQUIRE(static_cast<double>(middle) == value);
    for (const float near : {middle, std::nextafter(middle, HUGE_VALF), std::nextafter(middle, -HUGE_VALF)}) {
      check(near);
      check(-near);
    }
  };
  const auto& values = finite_values<TestType>();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    around(values[i]);
    around((values[i] + values[i + 1]) / 2);
  }
  around(values.back());
  // Where the next number would be, were there one, and half the way.
  const double step = values.back() - values[values.size() - 2];
  around(values.back() + step / 2);
  if (sizeof(TestType) == 1 || std::is_same_v<TestType, Float16>) around(values.back() + step);
  for (const float special : {HUGE_VALF, std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                              std::numeric_limits<float>::denorm_min(), std::nanf("")}) {
    check(special);
    check(-special);
  }
  CHECK(check.wrong() == 0);
}

TEMPLATE_TEST_CASE("narrowing any float agrees with the search", "[unit][numerics]", Float16, Bfloat16,
                   Float8E4M3, Float8E5M2) {
  NarrowingCheck<TestType> check;
  std::mt19937 random(20240607);
  for (int i = 0; i < 200'000; ++i) check(bit_cast<float>(static_cast<std::uint32_t>(random())));
  // And in the format's own range, of which random bits hit little.
  std::uniform_real_distribution<float> exponent(-30.0f, 20.0f);
  for (int i = 0; i < 200'000; ++i) check(std::exp2(exponent(random)) * (random() % 2 ? 1.0f : -1.0f));
  CHECK(check.wrong() == 0);
}

TEST_CASE("overflow becomes infinity in 16 bits and the largest number in 8", "[unit][numerics]") {
  struct Row {
    const char* why;
    float value;
    int half, bfloat16, e4m3, e5m2;
  };
  const auto row = GENERATE(values<Row>({
      {"infinity", HUGE_VALF, 0x7C00, 0x7F80, 0x7E, 0x7B},
      {"minus infinity", -HUGE_VALF, 0xFC00, 0xFF80, 0xFE, 0xFB},
      {"largest float", std::numeric_limits<float>::max(), 0x7C00, 0x7F80, 0x7E, 0x7B},
      {"largest half", 65504.0f, 0x7BFF, 0x4780, 0x7E, 0x7B},
      {"half way above the largest half", 65520.0f, 0x7C00, 0x4780, 0x7E, 0x7B},
      {"largest e5m2", 57344.0f, 0x7B00, 0x4760, 0x7E, 0x7B},
      {"largest e4m3", 448.0f, 0x5F00, 0x43E0, 0x7E, 0x5F},
      {"what would be infinity in e5m2", 65536.0f, 0x7C00, 0x4780, 0x7E, 0x7B},
      {"minus zero", -0.0f, 0x8000, 0x8000, 0x80, 0x80},
  }));
  CAPTURE(row.why);
  CHECK(numerics::from_float<Float16>(row.value).bits == row.half);
  CHECK(numerics::from_float<Bfloat16>(row.value).bits == row.bfloat16);
  CHECK(numerics::from_float<Float8E4M3>(row.value).bits == row.e4m3);
  CHECK(numerics::from_float<Float8E5M2>(row.value).bits == row.e5m2);
}

TEST_CASE("NaN of any payload and sign stays NaN", "[unit][numerics]") {
  const auto bits = GENERATE(as<std::uint32_t>{}, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF);
  CAPTURE(bits);
  const float nan = bit_cast<float>(bits);
  CHECK(std::isnan(decode(numerics::from_float<Float16>(nan))));
  CHECK(std::isnan(decode(numerics::from_float<Bfloat16>(nan))));
  CHECK((numerics::from_float<Float8E4M3>(nan).bits & 0x7F) == 0x7F);
  CHECK(std::isnan(decode(numerics::from_float<Float8E5M2>(nan))));
}

}  // namespace pkcomm::test
