// Rounds a real number to the bits of an element type: to nearest, ties to even, once. The expected results
// of reductions are made with it. It works from the definition of the formats (exponent and fraction widths),
// in double arithmetic, and shares nothing with the library that is being checked.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "pkcomm/pkcomm.h"

namespace pkcomm::perf {

struct SmallFormat {
  int exponent_bits;
  int fraction_bits;
  std::uint64_t largest;   // bits of the largest finite number
  std::uint64_t overflow;  // bits of what lies beyond it: infinity, or `largest` where the type saturates
};

inline SmallFormat small_format(pkcommDataType_t type) {
  switch (type) {
    case pkcommFloat16:
      return {5, 10, 0x7BFF, 0x7C00};
    case pkcommBfloat16:
      return {8, 7, 0x7F7F, 0x7F80};
    case pkcommFloat8e4m3:
      return {4, 3, 0x7E, 0x7E};
    default:
      return {5, 2, 0x7B, 0x7B};  // pkcommFloat8e5m2
  }
}

/// `value` is not NaN and `type` a float type.
inline std::uint64_t round_to_bits(double value, pkcommDataType_t type) {
  if (type == pkcommFloat64) return std::bit_cast<std::uint64_t>(value);
  if (type == pkcommFloat32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const SmallFormat format = small_format(type);
  const int sign_position = format.exponent_bits + format.fraction_bits;
  const std::uint64_t sign = std::uint64_t{std::signbit(value)} << sign_position;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | format.overflow;

  const int least_exponent = 2 - (1 << (format.exponent_bits - 1));  // of normal numbers
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = [0.5, 1) * 2^exponent
  exponent = std::max(exponent - 1, least_exponent);
  // In units of the last place; scaling by a power of two is exact.
  const double units = std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent));
  // Adding instead of or-ing lets the fraction carry into the exponent, and leaves subnormal numbers right.
  const std::uint64_t bits = (static_cast<std::uint64_t>(exponent - least_exponent) << format.fraction_bits) +
                             static_cast<std::uint64_t>(units);
  return sign | (bits > format.largest ? format.overflow : bits);
}

}  // namespace pkcomm::perf
