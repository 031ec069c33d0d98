// Elements of every type as bytes, for values that all types hold exactly: small integers. Written apart from the
// library's conversions, so that it cannot share their faults.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "pkcomm/pkcomm.h"

namespace pkcomm::test {

inline constexpr pkcommDataType_t kTypes[] = {
    pkcommInt8,    pkcommUint8,   pkcommInt32,   pkcommUint32,   pkcommInt64,      pkcommUint64,
    pkcommFloat16, pkcommFloat32, pkcommFloat64, pkcommBfloat16, pkcommFloat8e4m3, pkcommFloat8e5m2};
inline constexpr pkcommRedOp_t kOps[] = {pkcommSum, pkcommProd, pkcommMax, pkcommMin, pkcommAvg};

inline std::size_t bytes_of(pkcommDataType_t type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}
inline bool is_fp8(pkcommDataType_t type) { return type == pkcommFloat8e4m3 || type == pkcommFloat8e5m2; }

/// A float format's bits for an integer (0 to 2^20) that it holds exactly.
inline std::uint64_t float_bits(std::uint64_t value, int exponent_bits, int mantissa_bits) {
  if (value == 0) return 0;
  int exponent = 0;
  while (value >> (exponent + 1) != 0) ++exponent;
  const std::uint64_t bias = (std::uint64_t{1} << (exponent_bits - 1)) - 1;
  const std::uint64_t rest = value - (std::uint64_t{1} << exponent);
  const std::uint64_t mantissa =
      mantissa_bits >= exponent ? rest << (mantissa_bits - exponent) : rest >> (exponent - mantissa_bits);
  return (bias + static_cast<std::uint64_t>(exponent)) << mantissa_bits | mantissa;
}

/// Writes a small non-negative integer as an element.
inline void store(std::byte* at, pkcommDataType_t type, std::uint64_t value) {
  std::uint64_t bits = value;
  switch (type) {
    case pkcommFloat16:
      bits = float_bits(value, 5, 10);
      break;
    case pkcommFloat32:
      bits = float_bits(value, 8, 23);
      break;
    case pkcommFloat64:
      bits = float_bits(value, 11, 52);
      break;
    case pkcommBfloat16:
      bits = float_bits(value, 8, 7);
      break;
    case pkcommFloat8e4m3:
      bits = float_bits(value, 4, 3);
      break;
    case pkcommFloat8e5m2:
      bits = float_bits(value, 5, 2);
      break;
    default:
      break;
  }
  std::memcpy(at, &bits, bytes_of(type));  // little endian
}

/// Index of the first element that differs, or -1.
inline std::ptrdiff_t first_difference(const std::byte* got, const std::byte* expected, std::size_t count,
                                       std::size_t element) {
  if (count == 0 || std::memcmp(got, expected, count * element) == 0) return -1;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(got + i * element, expected + i * element, element) != 0)
      return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

}  // namespace pkcomm::test
