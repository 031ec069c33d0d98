// Looking at the bits of a value, on host and device. std::bit_cast and a plain memcpy are host functions;
// the builtin is neither, needs no alignment and no headers, and costs nothing once optimised.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/host_device.hpp"

// The iterations of the loop that follows touch different elements, or the same element of exactly equal
// arrays. Without it the vectoriser's run-time check for overlap sends an in-place reduction down the scalar
// path.
#if defined(__clang__)
#define PK_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define PK_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define PK_INDEPENDENT_ITERATIONS
#endif

// Lanes of a word live in registers only where the loop over them is unrolled; host compilers do that
// unasked.
#ifdef __CUDA_ARCH__
#define PK_UNROLL _Pragma("unroll")
#else
#define PK_UNROLL
#endif

namespace pkcomm::numerics {

template <class To, class From>
PK_HD inline To bit_cast(From from) {  // by value: device code has no address of a constant
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<From>);
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

template <int kBytes>
struct UintOfSize;
template <>
struct UintOfSize<1> {
  using Type = std::uint8_t;
};
template <>
struct UintOfSize<2> {
  using Type = std::uint16_t;
};
template <>
struct UintOfSize<4> {
  using Type = std::uint32_t;
};
template <>
struct UintOfSize<8> {
  using Type = std::uint64_t;
};

/// The unsigned integer as wide as T, for the bits of a T and for arithmetic that wraps.
template <class T>
using BitsOf = typename UintOfSize<sizeof(T)>::Type;

/// All ones where `condition` holds. With select, a choice that stays arithmetic: compilers may turn `?:`
/// into a branch, and then do not vectorise the loop around it.
template <class Bits>
PK_HD inline Bits mask(bool condition) {
  return static_cast<Bits>(-static_cast<Bits>(condition));
}
template <class Bits>
PK_HD inline Bits select(Bits mask, Bits set, Bits clear) {
  return static_cast<Bits>((set & mask) | (clear & ~mask));
}

}  // namespace pkcomm::numerics
