// The arithmetic that reductions are done in: 16- and 8-bit floats in float, everything else in its own type.
// Floats round after every operation, never fused, never flushed; integers wrap. On the host that rests on
// flags of the build (-ffp-contract=off, no -ffast-math); on the device intrinsics say it, whatever the
// flags.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/host_device.hpp"
#include "numerics/bits.hpp"
#include "numerics/float_formats.hpp"

namespace pkcomm::numerics {

template <class T>
inline constexpr bool kIsNarrowFloat = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16> ||
                                       std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>;
template <class T>
inline constexpr bool kIsFloat = kIsNarrowFloat<T> || std::is_floating_point_v<T>;

/// The element type T as arithmetic sees it.
template <class T>
struct Arithmetic {
  using Accumulator = std::conditional_t<kIsNarrowFloat<T>, float, T>;

  PK_HD static Accumulator widen(T value) {
    if constexpr (kIsNarrowFloat<T>) {
      return to_float(value);
    } else {
      return value;
    }
  }
  /// Rounds to T once.
  PK_HD static T narrow(Accumulator value) {
    if constexpr (kIsNarrowFloat<T>) {
      return from_float<T>(value);
    } else {
      return value;
    }
  }
};

/// A pre-multiplier as it travels: the bits of the accumulator type in the low bytes of a word.
template <class T>
PK_HD inline std::uint64_t scalar_word(T scalar) {
  const auto wide = Arithmetic<T>::widen(scalar);
  return bit_cast<BitsOf<decltype(wide)>>(wide);
}
template <class T>
PK_HD inline typename Arithmetic<T>::Accumulator scalar_from_word(std::uint64_t word) {
  using Accumulator = typename Arithmetic<T>::Accumulator;
  return bit_cast<Accumulator>(static_cast<BitsOf<Accumulator>>(word));
}

#ifdef __CUDA_ARCH__
__device__ inline float add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float divide(float a, int b) { return __fdiv_rn(a, static_cast<float>(b)); }
__device__ inline double add(double a, double b) { return __dadd_rn(a, b); }
__device__ inline double multiply(double a, double b) { return __dmul_rn(a, b); }
__device__ inline double divide(double a, int b) { return __ddiv_rn(a, static_cast<double>(b)); }
#else
PK_HD inline float add(float a, float b) { return a + b; }
PK_HD inline float multiply(float a, float b) { return a * b; }
PK_HD inline float divide(float a, int b) { return a / static_cast<float>(b); }
PK_HD inline double add(double a, double b) { return a + b; }
PK_HD inline double multiply(double a, double b) { return a * b; }
PK_HD inline double divide(double a, int b) { return a / static_cast<double>(b); }
#endif

// Integers narrower than int are promoted to it and cannot overflow there; the others are added as unsigned.
template <class T>
requires std::is_integral_v<T> PK_HD inline T add(T a, T b) {
  return static_cast<T>(static_cast<BitsOf<T>>(a) + static_cast<BitsOf<T>>(b));
}
template <class T>
requires std::is_integral_v<T> PK_HD inline T multiply(T a, T b) {
  return static_cast<T>(static_cast<BitsOf<T>>(a) * static_cast<BitsOf<T>>(b));
}
/// Toward zero; `b` > 0 need not be representable in T.
template <class T>
requires std::is_integral_v<T> PK_HD inline T divide(T a, int b) {
  using Wide =
      std::conditional_t<std::is_signed_v<T>, std::common_type_t<T, int>, std::common_type_t<T, unsigned>>;
  return static_cast<T>(static_cast<Wide>(a) / static_cast<Wide>(b));
}

/// Whether a float of any type is neither infinite nor NaN.
template <class T>
PK_HD inline bool is_finite(T value) {
  const auto bits = bit_cast<BitsOf<T>>(value);
  constexpr BitsOf<T> kMagnitude = static_cast<BitsOf<T>>(~BitsOf<T>{0}) >> 1;
  return (bits & kMagnitude) <= FloatFormat<T>::kLargestFinite;
}

}  // namespace pkcomm::numerics
