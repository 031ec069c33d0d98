// A second opinion on arithmetic, for the tests of numerics/ and of whole collectives: formats decoded by the definition of
// a float, narrowing by search among all values of a format, folds one element at a time. Shares no code with what it
// checks, and is slow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "numerics/arithmetic.hpp"
#include "numerics/bits.hpp"
#include "numerics/float_formats.hpp"
#include "numerics/fold.hpp"

namespace pkcomm::test {

using numerics::Bfloat16;
using numerics::bit_cast;
using numerics::BitsOf;
using numerics::Float16;
using numerics::Float8E4M3;
using numerics::Float8E5M2;

struct Layout {
  int exponent_bits;
  int mantissa_bits;
  bool infinities;  // may be read; e4m3 uses the place for numbers and has NaN for all ones alone
  bool saturates;   // is never written
};
template <class T>
constexpr Layout kLayout{};
template <>
inline constexpr Layout kLayout<Float16>{5, 10, true, false};
template <>
inline constexpr Layout kLayout<Bfloat16>{8, 7, true, false};
template <>
inline constexpr Layout kLayout<Float8E4M3>{4, 3, false, true};
template <>
inline constexpr Layout kLayout<Float8E5M2>{5, 2, true, true};

/// The value that the bits of a narrow float mean.
template <class T>
double decode(T value) {
  constexpr Layout layout = kLayout<T>;
  const int bits = value.bits;
  const int fields = layout.exponent_bits + layout.mantissa_bits;
  const int exponent = bits >> layout.mantissa_bits & ((1 << layout.exponent_bits) - 1);
  const int fraction = bits & ((1 << layout.mantissa_bits) - 1);
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  const bool all_ones = exponent == (1 << layout.exponent_bits) - 1;
  double magnitude;
  if (layout.infinities && all_ones) {
    magnitude = fraction != 0 ? std::nan("") : HUGE_VAL;
  } else if (!layout.infinities && all_ones && fraction == (1 << layout.mantissa_bits) - 1) {
    magnitude = std::nan("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, 1 - bias - layout.mantissa_bits);
  } else {
    magnitude = std::ldexp((1 << layout.mantissa_bits) + fraction, exponent - bias - layout.mantissa_bits);
  }
  return std::copysign(magnitude, bits >> fields & 1 ? -1.0 : 1.0);
}

/// The non-negative finite values of T; bits are the index.
template <class T>
const std::vector<double>& finite_values() {
  static const std::vector<double> values = [] {
    std::vector<double> found;
    for (int bits = 0; std::isfinite(decode(T{static_cast<decltype(T::bits)>(bits)})); ++bits) {
      found.push_back(decode(T{static_cast<decltype(T::bits)>(bits)}));
    }
    return found;
  }();
  return values;
}

/// The T nearest to `value`, ties to even.
template <class T>
T encode(double value) {
  const auto& values = finite_values<T>();
  const double magnitude = std::fabs(value);
  std::size_t bits;
  if (std::isnan(value)) {
    bits = numerics::FloatFormat<T>::kNan;
  } else {
    const auto above =
        static_cast<std::size_t>(std::upper_bound(values.begin(), values.end(), magnitude) - values.begin());
    const double low = values[above - 1];
    const double high =
        above < values.size() ? values[above] : 2 * low - values[above - 2];  // as if the exponent went on
    const bool up =
        magnitude - low > high - magnitude || (magnitude - low == high - magnitude && above % 2 == 0);
    bits = up ? above : above - 1;
    if (kLayout<T>.saturates) bits = std::min(bits, values.size() - 1);
  }
  const std::size_t sign = std::signbit(value) ? std::size_t{1} << (8 * sizeof(T) - 1) : 0;
  return T{static_cast<decltype(T::bits)>(bits | sign)};
}

template <class T>
auto wide(T value) {
  if constexpr (numerics::kIsNarrowFloat<T>) {
    return static_cast<float>(decode(value));
  } else {
    return value;
  }
}

template <class T>
bool is_nan(T value) {
  if constexpr (numerics::kIsFloat<T>) return std::isnan(wide(value));
  return false;
}

/// Equal bits, or NaNs both.
template <class T>
bool same(T a, T b) {
  return bit_cast<BitsOf<T>>(a) == bit_cast<BitsOf<T>>(b) || (is_nan(a) && is_nan(b));
}

/// One element of a reduction, by the rules of pkcommRedOp_t; averages of finite elements must not overflow.
template <class T, class Op>
T reduce_one(const std::vector<T>& x, const std::vector<T>& multipliers) {
  using namespace numerics;
  const int nranks = static_cast<int>(x.size());
  if (nranks == 1 && !std::is_same_v<Op, PreMulSum>) return x[0];
  if constexpr (std::is_same_v<Op, Max> || std::is_same_v<Op, Min>) {
    T best = x[0];
    for (const T candidate : x) {
      if (is_nan(candidate)) continue;
      const auto a = wide(candidate), b = wide(best);
      bool wins = std::is_same_v<Op, Max> ? a > b : a < b;
      if constexpr (kIsFloat<T>) {
        if (a == b) wins = std::signbit(b) != std::signbit(a) && std::signbit(a) == std::is_same_v<Op, Min>;
      }
      if (wins || is_nan(best)) best = candidate;
    }
    return best;
  } else if constexpr (kIsFloat<T>) {
    using Wide = decltype(wide(x[0]));
    Wide sum = std::is_same_v<Op, PreMulSum> ? wide(x[0]) * wide(multipliers[0]) : wide(x[0]);
    for (std::size_t rank = 1; rank < x.size(); ++rank) {
      const Wide term =
          std::is_same_v<Op, PreMulSum> ? wide(x[rank]) * wide(multipliers[rank]) : wide(x[rank]);
      sum = std::is_same_v<Op, Prod> ? sum * term : sum + term;
    }
    if (std::is_same_v<Op, Avg>) {
      sum = sum / static_cast<Wide>(nranks);
      if (!std::isfinite(sum)) {
        const int room = 40;  // bits: more than any sum here needs
        sum = 0;
        for (const T value : x) sum += std::ldexp(wide(value), -room);
        sum = std::ldexp(sum / static_cast<Wide>(nranks), room);
      }
    }
    if constexpr (kIsNarrowFloat<T>) {
      return encode<T>(sum);
    } else {
      return sum;
    }
  } else {
    std::uint64_t sum = static_cast<std::uint64_t>(x[0]);
    if (std::is_same_v<Op, PreMulSum>) sum *= static_cast<std::uint64_t>(multipliers[0]);
    for (std::size_t rank = 1; rank < x.size(); ++rank) {
      std::uint64_t term = static_cast<std::uint64_t>(x[rank]);
      if (std::is_same_v<Op, PreMulSum>) term *= static_cast<std::uint64_t>(multipliers[rank]);
      sum = std::is_same_v<Op, Prod> ? sum * term : sum + term;
    }
    const T wrapped = static_cast<T>(sum);
    if (!std::is_same_v<Op, Avg>) return wrapped;
    using Widest = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>(static_cast<Widest>(wrapped) / static_cast<Widest>(nranks));
  }
}

}  // namespace pkcomm::test
