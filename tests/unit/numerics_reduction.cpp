// The rules of reductions with their exact numbers, each in every way that a reduction can be done.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/host_reduce.hpp"
#include "numerics/reduction.hpp"
#include "support/catch.hpp"
#include "support/numerics_reference.hpp"
#include "unit/numerics_every_way.hpp"

namespace pkcomm::test {
namespace {

using namespace numerics;

template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && all_same(data_type<T>(), a.data(), b.data(), a.size());
}

template <class T>
T narrow_of(float value) {
  return encode<T>(value);
}
template <>
float narrow_of<float>(float value) {
  return value;
}

template <class T, class Op>
std::uint64_t single_bits(const std::vector<float>& x) {
  std::vector<T> narrow;
  for (const float value : x) narrow.push_back(narrow_of<T>(value));
  return bit_cast<BitsOf<T>>(reduce_single<T, Op>(narrow));
}

const float kNan = std::nanf("");

}  // namespace

TEMPLATE_TEST_CASE("C08: a NaN loses in min and max wherever it stands", "[unit][numerics]", float, Float16,
                   Bfloat16, Float8E4M3, Float8E5M2) {
  std::vector<std::size_t> order = {0, 1, 2, 3};
  const float inputs[] = {1, kNan, 3, 4};
  do {
    std::vector<TestType> x;
    for (const std::size_t i : order) x.push_back(narrow_of<TestType>(inputs[i]));
    CHECK(wide(reduce_single<TestType, Min>(x)) == 1);
    CHECK(wide(reduce_single<TestType, Max>(x)) == 4);
  } while (std::next_permutation(order.begin(), order.end()));

  for (const float sign : {1.0f, -1.0f}) {
    const std::vector<TestType> nans(4, narrow_of<TestType>(std::copysign(kNan, sign)));
    CHECK(is_nan(reduce_single<TestType, Min>(nans)));
    CHECK(is_nan(reduce_single<TestType, Max>(nans)));
  }
}

TEST_CASE("C08: min and max have no identity that could show", "[unit][numerics]") {
  CHECK(reduce_single<float, Max>({-HUGE_VALF, -HUGE_VALF, -HUGE_VALF}) == -HUGE_VALF);
  CHECK(reduce_single<float, Min>({HUGE_VALF, HUGE_VALF, HUGE_VALF}) == HUGE_VALF);
  CHECK(reduce_single<float, Max>({-5, -7}) == -5);
  CHECK(reduce_single<float, Max>({kNan, -HUGE_VALF}) == -HUGE_VALF);
  CHECK(reduce_single<float, Min>({HUGE_VALF, kNan}) == HUGE_VALF);
  CHECK(reduce_single<std::int8_t, Max>({-128, -128}) == -128);
  CHECK(reduce_single<std::uint8_t, Min>({255, 255}) == 255);
  // Nothing is rounded, so that infinities of e5m2 survive where a sum would saturate.
  CHECK(reduce_single<Float8E5M2, Max>({Float8E5M2{0xFC}, Float8E5M2{0xFC}}).bits == 0xFC);
  CHECK(reduce_single<Float8E5M2, Min>({Float8E5M2{0x7C}, Float8E5M2{0xFF}}).bits == 0x7C);
  CHECK(reduce_single<Float8E5M2, Sum>({Float8E5M2{0x7C}, Float8E5M2{0x3C}}).bits == 0x7B);
}

TEMPLATE_TEST_CASE("C09: minus zero is kept, and is less than plus zero", "[unit][numerics]", float, double,
                   Float16, Bfloat16, Float8E4M3, Float8E5M2) {
  const auto minus =
      bit_cast<TestType>(static_cast<BitsOf<TestType>>(BitsOf<TestType>{1} << (8 * sizeof(TestType) - 1)));
  const auto plus = bit_cast<TestType>(BitsOf<TestType>{0});
  const auto bits = [](TestType value) { return bit_cast<BitsOf<TestType>>(value); };
  CHECK(bits(reduce_single<TestType, Sum>({minus, minus, minus})) == bits(minus));
  CHECK(bits(reduce_single<TestType, Sum>({minus, plus})) == bits(plus));
  CHECK(bits(reduce_single<TestType, Avg>({minus, minus, minus})) == bits(minus));
  for (const auto& x : {std::vector<TestType>{minus, plus}, std::vector<TestType>{plus, minus}}) {
    CHECK(bits(reduce_single<TestType, Min>(x)) == bits(minus));
    CHECK(bits(reduce_single<TestType, Max>(x)) == bits(plus));
  }
}

TEST_CASE("C09: one rank's elements come back bit for bit", "[unit][numerics]") {
  const float signalling = bit_cast<float>(0x7F800001u);
  CHECK(bit_cast<std::uint32_t>(reduce_single<float, Sum>({signalling})) == 0x7F800001);
  CHECK(bit_cast<std::uint32_t>(reduce_single<float, Avg>({signalling})) == 0x7F800001);
  CHECK(bit_cast<std::uint32_t>(reduce_single<float, Sum>({-0.0f})) == 0x80000000);
  CHECK(reduce_single<Float8E5M2, Sum>({Float8E5M2{0x7C}}).bits == 0x7C);
}

TEST_CASE("C10: integers wrap and leave their neighbours alone", "[unit][numerics]") {
  const std::vector<std::int8_t> a = {120, 0, -1, 127, -128}, b = {100, 0, -1, 1, -1},
                                 sum = {-36, 0, -2, -128, 127};
  const std::vector<std::uint8_t> c = {200, 255, 1, 0}, d = {100, 1, 1, 0}, unsigned_sum = {44, 0, 2, 0};
  for (std::size_t length = 1; length <= 33; ++length) {
    PerRank<std::int8_t> x(2);
    PerRank<std::uint8_t> y(2);
    std::vector<std::int8_t> expected;
    std::vector<std::uint8_t> unsigned_expected;
    for (std::size_t i = 0; i < length; ++i) {
      x[0].push_back(a[i % 5]);
      x[1].push_back(b[i % 5]);
      expected.push_back(sum[i % 5]);
      y[0].push_back(c[i % 4]);
      y[1].push_back(d[i % 4]);
      unsigned_expected.push_back(unsigned_sum[i % 4]);
    }
    CHECK(reduce<std::int8_t, Sum>(x) == expected);
    CHECK(reduce<std::uint8_t, Sum>(y) == unsigned_expected);
  }
  CHECK(reduce_single<std::int8_t, Prod>({16, 16}) == 0);
  CHECK(reduce_single<std::int32_t, Sum>({2147483647, 1}) == -2147483647 - 1);
  CHECK(reduce_single<std::uint8_t, Sum>(std::vector<std::uint8_t>(256, 1)) == 0);
  CHECK(reduce_single<std::uint8_t, Max>(std::vector<std::uint8_t>(256, 1)) == 1);
}

TEST_CASE("C11: finite elements never average to infinity", "[unit][numerics]") {
  CHECK(single_bits<Float16, Avg>({60000, 60000}) == 0x7B53);
  CHECK(single_bits<float, Avg>({FLT_MAX, FLT_MAX}) == 0x7F7FFFFF);
  CHECK(single_bits<Float16, Avg>(std::vector<float>(8, 65504)) == 0x7BFF);
  CHECK(reduce_single<Bfloat16, Avg>(std::vector<Bfloat16>(10, Bfloat16{0x7F7F})).bits == 0x7F7F);
  CHECK(reduce_single<double, Avg>({DBL_MAX, DBL_MAX, DBL_MAX}) == DBL_MAX);
  CHECK(reduce_single<float, Avg>({-FLT_MAX, -FLT_MAX, -FLT_MAX}) == -FLT_MAX);
  CHECK(reduce_single<float, Avg>({FLT_MAX, FLT_MAX, -FLT_MAX, -FLT_MAX}) == 0);
  for (const int nranks : {3, 5, 6, 7, 9, 31, 32, 33, 72, 100, 127, 1000, 1025, 5000}) {
    CAPTURE(nranks);
    const auto w = static_cast<std::size_t>(nranks);
    const float of_floats = reduce_single<float, Avg>(std::vector<float>(w, FLT_MAX));
    CHECK(std::isfinite(of_floats));
    CHECK(of_floats > 0.9999f * FLT_MAX);
    CHECK(reduce_single<Float16, Avg>(std::vector<Float16>(w, Float16{0xFBFF})).bits == 0xFBFF);
    CHECK(reduce_single<Bfloat16, Avg>(std::vector<Bfloat16>(w, Bfloat16{0x7F7F})).bits == 0x7F7F);
  }
}

TEMPLATE_TEST_CASE("C11: the largest element averages to at most itself over any number of ranks",
                   "[unit][numerics]", float, double, Float16, Bfloat16) {
  const auto largest =
      bit_cast<TestType>(static_cast<BitsOf<TestType>>(FloatFormat<TestType>::kLargestFinite));
  int wrong = 0;
  for (int nranks = 2; nranks <= 4200; ++nranks) {
    const ScaledAverage<TestType> average(nranks);
    auto state = average.start(largest);
    for (int rank = 1; rank < nranks; ++rank) state = average.next(state, largest);
    const TestType mean = average.finish(state);
    wrong += !std::isfinite(wide(mean)) || wide(mean) < wide(largest) * 0.999f;
  }
  CHECK(wrong == 0);
}

TEST_CASE("C11: infinities and NaN average as they add", "[unit][numerics]") {
  CHECK(reduce_single<float, Avg>({HUGE_VALF, 1}) == HUGE_VALF);
  CHECK(reduce_single<float, Avg>({FLT_MAX, FLT_MAX, -HUGE_VALF}) == -HUGE_VALF);
  CHECK(std::isnan(reduce_single<float, Avg>({HUGE_VALF, -HUGE_VALF})));
  CHECK(std::isnan(reduce_single<float, Avg>({kNan, 1})));
  // A bad element among good ones changes no other.
  PerRank<float> x(3, std::vector<float>(600, 2));
  x[1][299] = HUGE_VALF;
  x[2][17] = x[0][17] = FLT_MAX;
  const auto mean = reduce<float, Avg>(x);
  CHECK(std::count(mean.begin(), mean.end(), 2.0f) == 598);
  CHECK(mean[299] == HUGE_VALF);
  CHECK(mean[17] == FLT_MAX / 3 * 2);
  // Not by scaling either, which would lose a subnormal beside an overflow.
  CHECK(reduce<float, Avg>({{FLT_MAX, 0x1p-149f}, {FLT_MAX, 0x1p-149f}}) ==
        std::vector<float>{FLT_MAX, 0x1p-149f});
}

TEST_CASE("C12: integer averages wrap in their own type, then round toward zero", "[unit][numerics]") {
  using I32 = std::int32_t;
  CHECK(reduce_single<I32, Avg>({7, 0}) == 3);
  CHECK(reduce_single<I32, Avg>({-3, 0}) == -1);
  CHECK(reduce_single<I32, Avg>({-1, 0}) == 0);
  CHECK(reduce_single<I32, Avg>({1, 1, 0}) == 0);
  CHECK(reduce_single<I32, Avg>({1, 2, 3, 4}) == 2);
  CHECK(reduce_single<std::int8_t, Avg>({100, 100}) == -28);
  CHECK(reduce_single<std::uint32_t, Avg>({4294967295, 4294967295}) == 2147483647);
  const std::int64_t large = std::int64_t{1} << 62;
  CHECK(reduce_single<std::int64_t, Avg>({large, large}) == -large);
  // More ranks than the type can count.
  CHECK(reduce_single<std::int8_t, Avg>(std::vector<std::int8_t>(300, 1)) == 0);
  CHECK(reduce_single<std::uint8_t, Avg>(std::vector<std::uint8_t>(255, 1)) == 1);
  CHECK(reduce_single<std::int8_t, Avg>(std::vector<std::int8_t>(2, -64)) == -64);
}

TEST_CASE("C13: 16-bit sums accumulate in float", "[unit][numerics]") {
  const auto with_big_at = [](std::size_t place, std::size_t nranks, float big) {
    std::vector<float> x(nranks, 1);
    x[place] = big;
    return x;
  };
  for (std::size_t place = 0; place < 4; ++place) {
    CHECK(single_bits<Bfloat16, Sum>(with_big_at(place, 4, 256)) == 0x4382);  // 259, half way, to even: 260
  }
  for (std::size_t place = 0; place < 8; ++place) {
    CHECK(single_bits<Bfloat16, Sum>(with_big_at(place, 8, 256)) == encode<Bfloat16>(264).bits);
    CHECK(single_bits<Float16, Sum>(with_big_at(place, 8, 2048)) == 0x6804);
  }
}

TEST_CASE("C14: all of an 8-bit buffer is reduced, as numbers", "[unit][numerics]") {
  const auto filled = [](auto one) { return std::vector<decltype(one)>(64, one); };
  const Float8E4M3 a{0x38}, a2{0x40};
  const Float8E5M2 b{0x3C}, b2{0x40};
  CHECK(equal(reduce<Float8E4M3, Sum>({filled(a), filled(a)}), filled(a2)));
  CHECK(equal(reduce<Float8E4M3, Max>({filled(a), filled(a)}), filled(a)));
  CHECK(equal(reduce<Float8E4M3, Min>({filled(a), filled(a)}), filled(a)));
  CHECK(equal(reduce<Float8E4M3, Prod>({filled(a), filled(a)}), filled(a)));
  CHECK(equal(reduce<Float8E4M3, Avg>({filled(a), filled(a)}), filled(a)));
  CHECK(equal(reduce<Float8E5M2, Sum>({filled(b), filled(b)}), filled(b2)));
}

TEMPLATE_TEST_CASE("C15: every type has every operation", "[unit][numerics]", std::int8_t, std::uint8_t,
                   std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, Float16, float, double, Bfloat16,
                   Float8E4M3, Float8E5M2) {
  const auto of = [](double value) {
    if constexpr (kIsNarrowFloat<TestType>) {
      return encode<TestType>(value);
    } else {
      return static_cast<TestType>(value);
    }
  };
  const std::vector<TestType> x = {of(1), of(2), of(3), of(4)};
  CHECK(same(reduce_single<TestType, Sum>(x), of(10)));
  CHECK(same(reduce_single<TestType, Prod>(x), of(24)));
  CHECK(same(reduce_single<TestType, Max>(x), of(4)));
  CHECK(same(reduce_single<TestType, Min>(x), of(1)));
  CHECK(same(reduce_single<TestType, Avg>(x), of(kIsFloat<TestType> ? 2.5 : 2)));
  CHECK(same(reduce_single<TestType, PreMulSum>(x, {of(4), of(3), of(2), of(1)}), of(20)));
}

TEST_CASE("C15: the bits in 8 bits", "[unit][numerics]") {
  const std::vector<float> x = {1, 2, 3, 4};
  CHECK(single_bits<Float8E4M3, Sum>(x) == 0x52);
  CHECK(single_bits<Float8E4M3, Prod>(x) == 0x5C);
  CHECK(single_bits<Float8E4M3, Max>(x) == 0x48);
  CHECK(single_bits<Float8E4M3, Min>(x) == 0x38);
  CHECK(single_bits<Float8E4M3, Avg>(x) == 0x42);
  CHECK(single_bits<Float8E5M2, Sum>(x) == 0x49);
  CHECK(single_bits<Float8E5M2, Sum>({4, 3, 2, 1}) == 0x49);
  CHECK(single_bits<Float8E5M2, Prod>(x) == 0x4E);
  CHECK(single_bits<Float8E5M2, Max>(x) == 0x44);
  CHECK(single_bits<Float8E5M2, Min>(x) == 0x3C);
  CHECK(single_bits<Float8E5M2, Avg>(x) == 0x41);
}

TEST_CASE("C16: the sum is formed in rank order, whatever the length", "[unit][numerics]") {
  const float inputs[] = {0x1p24f, 1, -0x1p24f, 1};
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1048579}}) {
    PerRank<float> x;
    for (const float value : inputs) x.emplace_back(count, value);
    std::vector<const void*> sources;
    for (const auto& elements : x) sources.push_back(elements.data());
    for (const HostVariant variant : host_variants()) {
      std::vector<float> sum(count);
      host_reduce_rows(pkcommFloat32, ReduceKind::kSum, variant)(count, 4, sources.data(), sum.data(),
                                                                 nullptr);
      CHECK(std::count(sum.begin(), sum.end(), 1.0f) == static_cast<std::ptrdiff_t>(count));
    }
  }
}

TEST_CASE("a pre-multiplied element is rounded before it is added", "[unit][numerics]") {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, a tie that rounds to 1 + 2^-11; a fused multiply-add would leave
  // 2^-24.
  const float factor = 1 + 0x1p-12f;
  const PerRank<float> x = {std::vector<float>(100, -(1 + 0x1p-11f)), std::vector<float>(100, factor)};
  CHECK(reduce<float, PreMulSum>(x, {1, factor}) == std::vector<float>(100, 0));
  // In the accumulator's type: 3 * 1000 * 10 - 3 * 999 * 10 overflows and loses in half, were it rounded
  // there.
  const std::vector<Float16> halves = {encode<Float16>(1000), encode<Float16>(-999)};
  CHECK(decode(reduce_single<Float16, PreMulSum>(halves, {encode<Float16>(300), encode<Float16>(300)})) ==
        300);
  CHECK(reduce_single<std::int8_t, PreMulSum>({100, 1}, {2, -1}) == -57);
  CHECK(reduce_single<float, PreMulSum>({3}, {0.5f}) == 1.5f);
}

TEST_CASE("an unknown type or operation has no host function", "[unit][numerics]") {
  CHECK(host_reduce_rows(static_cast<pkcommDataType_t>(PKCOMM_DATA_TYPES), ReduceKind::kSum) == nullptr);
  CHECK(host_reduce_rows(pkcommFloat32, static_cast<ReduceKind>(kReduceKinds)) == nullptr);
}

}  // namespace pkcomm::test
