// The 16- and 8-bit floats as storage types, with conversions to and from float that give the same bits on
// host and device. Widening is exact. Narrowing rounds to nearest, ties to even. On overflow Float16 and
// Bfloat16 become infinite as IEEE 754 has it; the 8-bit types saturate, and saturate infinities too, as
// NVIDIA's __NV_SATFINITE does: e4m3 has no infinity at all, and an e5m2 infinity written here would come
// from an overflow. NaN stays NaN (its sign kept, its payload not, __NV_SATFINITE's 0x7F for e4m3), zeros
// keep their sign, subnormals are exact.
//
// No branches, only selections of 32-bit words, so that loops of these vectorise. A processor that flushes
// subnormal floats gives the same bits; rounding to nearest is assumed (see float_environment.hpp).
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "numerics/bits.hpp"

namespace pkcomm::numerics {

struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};
struct Float8E4M3 {
  std::uint8_t bits;
};
struct Float8E5M2 {
  std::uint8_t bits;
};

/// How a format uses its bits. `kLargest` are the bits of its largest number, infinity included where
/// narrowing may produce one; `kLargestFinite` of its largest finite one; any magnitude above
/// `kLargestOrdered` is a NaN.
template <class T>
struct FloatFormat;

template <>
struct FloatFormat<Float16> {
  static constexpr int kExponentBits = 5, kMantissaBits = 10;
  static constexpr std::uint32_t kLargest = 0x7C00, kLargestFinite = 0x7BFF, kLargestOrdered = 0x7C00,
                                 kNan = 0x7E00;
};
template <>
struct FloatFormat<Bfloat16> {
  static constexpr int kExponentBits = 8, kMantissaBits = 7;
  static constexpr std::uint32_t kLargest = 0x7F80, kLargestFinite = 0x7F7F, kLargestOrdered = 0x7F80,
                                 kNan = 0x7FC0;
};
template <>
struct FloatFormat<Float8E4M3> {
  static constexpr int kExponentBits = 4, kMantissaBits = 3;
  static constexpr std::uint32_t kLargest = 0x7E, kLargestFinite = 0x7E, kLargestOrdered = 0x7E, kNan = 0x7F;
};
template <>
struct FloatFormat<Float8E5M2> {
  static constexpr int kExponentBits = 5, kMantissaBits = 2;
  static constexpr std::uint32_t kLargest = 0x7B, kLargestFinite = 0x7B, kLargestOrdered = 0x7C, kNan = 0x7E;
};
template <>
struct FloatFormat<float> {
  static constexpr std::uint32_t kLargestFinite = 0x7F7FFFFF, kLargestOrdered = 0x7F800000;
};
template <>
struct FloatFormat<double> {
  static constexpr std::uint64_t kLargestFinite = 0x7FEFFFFFFFFFFFFF, kLargestOrdered = 0x7FF0000000000000;
};

namespace detail {

// Shapes of the three formats whose exponent is narrower than float's, in terms of float's fields.
template <class T>
struct Narrow {
  using Format = FloatFormat<T>;
  static constexpr int kShift = 23 - Format::kMantissaBits;
  static constexpr std::uint32_t kSign = 1u << (8 * sizeof(T) - 1);
  static constexpr int kSignShift = 32 - 8 * static_cast<int>(sizeof(T));
  static constexpr std::uint32_t kRebias =
      128u - (1u << (Format::kExponentBits - 1));                     // float's bias less T's
  static constexpr std::uint32_t kLeastNormal = (kRebias + 1) << 23;  // as a float
};

// Whether a < b, as a mask, for words below 2^31: without the unsigned comparison that SSE2 lacks.
PK_HD inline std::uint32_t below(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(a - b) >> 31);
}

template <class T>
PK_HD inline float widen(std::uint32_t bits) {
  using N = Narrow<T>;
  using Format = FloatFormat<T>;
  const std::uint32_t magnitude = bits & (N::kSign - 1);
  const std::uint32_t field = magnitude << N::kShift;
  const std::uint32_t normal = field + (N::kRebias << 23);
  // A subnormal becomes the fraction of the least normal number, which is then taken away again: exact.
  const float offset = bit_cast<float>(N::kLeastNormal);
  const std::uint32_t subnormal = bit_cast<std::uint32_t>(bit_cast<float>(field + N::kLeastNormal) - offset);
  const std::uint32_t number = select(below(magnitude, 1u << Format::kMantissaBits), subnormal, normal);
  // Infinities and NaNs: all ones in the exponent, quiet where e4m3 has no fraction to tell.
  const std::uint32_t special = below(Format::kLargestFinite, magnitude);
  const std::uint32_t all_ones = Format::kLargestOrdered > Format::kLargestFinite ? 0x7F800000u : 0x7FC00000u;
  return bit_cast<float>(number | (all_ones & special) | (bits & N::kSign) << N::kSignShift);
}

template <class T>
PK_HD inline std::uint32_t narrow(float value) {
  using N = Narrow<T>;
  using Format = FloatFormat<T>;
  const std::uint32_t bits = bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const std::uint32_t odd = (magnitude >> N::kShift) & 1u;
  const std::uint32_t normal =
      (magnitude - (N::kRebias << 23) + (1u << (N::kShift - 1)) - 1u + odd) >> N::kShift;
  // Adding a number whose last place is T's least subnormal makes the adder round there, ties to even. What
  // is not below T's normal range is replaced before, so that the addition never sees a NaN.
  const std::uint32_t small = below(magnitude, N::kLeastNormal);
  const std::uint32_t anchor = (N::kRebias + static_cast<std::uint32_t>(N::kShift) + 1) << 23;
  const float sum = bit_cast<float>(magnitude & small) + bit_cast<float>(anchor);
  const std::uint32_t number = select(small, bit_cast<std::uint32_t>(sum) - anchor, normal);
  const std::uint32_t bounded = select(below(Format::kLargest, number), Format::kLargest, number);
  const std::uint32_t result = select(below(0x7F800000u, magnitude), Format::kNan, bounded);
  return result | ((bits >> N::kSignShift) & N::kSign);
}

}  // namespace detail

PK_HD inline float to_float(Float16 value) { return detail::widen<Float16>(value.bits); }
PK_HD inline float to_float(Bfloat16 value) {
  return bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
PK_HD inline float to_float(Float8E4M3 value) { return detail::widen<Float8E4M3>(value.bits); }
PK_HD inline float to_float(Float8E5M2 value) { return detail::widen<Float8E5M2>(value.bits); }

/// The T nearest to `value`.
template <class T>
PK_HD inline T from_float(float value) {
  return T{static_cast<decltype(T::bits)>(detail::narrow<T>(value))};
}
template <>
PK_HD inline Bfloat16 from_float<Bfloat16>(float value) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded =
      (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;  // may carry into infinity, as it should
  const std::uint32_t nan = (bits >> 16 & 0x8000u) | FloatFormat<Bfloat16>::kNan;
  return Bfloat16{
      static_cast<std::uint16_t>(select(detail::below(0x7F800000u, bits & 0x7FFFFFFFu), nan, rounded))};
}

}  // namespace pkcomm::numerics
