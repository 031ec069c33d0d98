// The operations, each as a fold over the ranks in rank order: start with rank 0's element, take in one rank
// after the other, finish. Fold<T, Op> is all that knows what an operation does to an element; reduction.hpp
// runs folds over arrays and over packets. See docs of pkcommRedOp_t for the rules in the user's words.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/host_device.hpp"
#include "numerics/arithmetic.hpp"
#include "numerics/bits.hpp"

namespace pkcomm::numerics {

struct Sum {};
struct Prod {};
struct Max {};
struct Min {};
struct Avg {};
struct PreMulSum {};

/// No pre-multipliers: for every operation but PreMulSum.
struct NoScalars {
  PK_HD std::uint64_t operator()(int) const { return 0; }
};
/// The pre-multiplier of rank r is word r (see scalar_word). Borrowed.
struct ScalarWords {
  const std::uint64_t* words;
  PK_HD std::uint64_t operator()(int rank) const { return words[rank]; }
};

template <class Op>
inline constexpr bool kUsesScalars = std::is_same_v<Op, PreMulSum>;

/// A float average may have to be formed again, see average_again; never one of 8 bits, whose sums fit into
/// float.
template <class T, class Op>
inline constexpr bool kMayRetry = std::is_same_v<Op, Avg>&& kIsFloat<T> && sizeof(T) > 1;

template <class T, class Op>
struct Fold;

template <class T>
struct Fold<T, Sum> {
  using State = typename Arithmetic<T>::Accumulator;
  PK_HD static State start(T x, std::uint64_t) { return Arithmetic<T>::widen(x); }
  PK_HD static State next(State state, T x, std::uint64_t) { return add(state, Arithmetic<T>::widen(x)); }
  PK_HD static T finish(State state, int) { return Arithmetic<T>::narrow(state); }
};

template <class T>
struct Fold<T, Prod> : Fold<T, Sum> {
  using State = typename Arithmetic<T>::Accumulator;
  PK_HD static State next(State state, T x, std::uint64_t) {
    return multiply(state, Arithmetic<T>::widen(x));
  }
};

template <class T>
struct Fold<T, Avg> : Fold<T, Sum> {
  using State = typename Arithmetic<T>::Accumulator;
  PK_HD static T finish(State state, int nranks) { return Arithmetic<T>::narrow(divide(state, nranks)); }
};

/// A rank's element is multiplied, and the product rounded, before it is added; each rank has its own
/// multiplier.
template <class T>
struct Fold<T, PreMulSum> : Fold<T, Sum> {
  using State = typename Arithmetic<T>::Accumulator;
  PK_HD static State start(T x, std::uint64_t scalar) {
    return multiply(Arithmetic<T>::widen(x), scalar_from_word<T>(scalar));
  }
  PK_HD static State next(State state, T x, std::uint64_t scalar) { return add(state, start(x, scalar)); }
};

namespace detail {

// The rule of min and max: a NaN loses against a number, -0.0 is less than +0.0. The result is one of the
// elements, bit for bit (of NaNs alone, some NaN), whatever their order.

template <class T, bool kSmallestWins>
struct Extremum {
  static_assert(std::is_integral_v<T>);
  using State = T;
  PK_HD static State start(T x, std::uint64_t) { return x; }
  PK_HD static State next(State state, T x, std::uint64_t) {
    return (kSmallestWins ? x < state : x > state) ? x : state;
  }
  PK_HD static T finish(State state, int) { return state; }
};

template <class T, bool kSmallestWins>
requires std::is_floating_point_v<T>
struct Extremum<T, kSmallestWins> {
  using State = T;
  using Bits = BitsOf<T>;
  PK_HD static State start(T x, std::uint64_t) { return x; }
  PK_HD static State next(State state, T x, std::uint64_t) {
    const Bits a = bit_cast<Bits>(state), b = bit_cast<Bits>(x);
    const Bits stays = mask<Bits>(kSmallestWins ? state < x : state > x) | mask<Bits>(x != x);
    const Bits winner = select(stays, a, b);
    // Equal numbers have the same bits but for the sign of zero.
    return bit_cast<T>(kSmallestWins ? winner | (a & mask<Bits>(state == x))
                                     : winner & (a | mask<Bits>(state != x)));
  }
  PK_HD static T finish(State state, int) { return state; }
};

// Narrow floats are compared as signed integers of their own width, in which a NaN lies beyond everything on
// the losing side: less work than widening them.
template <class T, bool kSmallestWins>
requires kIsNarrowFloat<T>
struct Extremum<T, kSmallestWins> {
  using State = std::make_signed_t<BitsOf<T>>;
  static constexpr State kMagnitude = static_cast<State>(static_cast<BitsOf<T>>(~BitsOf<T>{0}) >> 1);
  static constexpr State kLoser = kSmallestWins ? kMagnitude : static_cast<State>(-kMagnitude - 1);

  PK_HD static State start(T x, std::uint64_t) {
    const State bits = bit_cast<State>(x);
    const State magnitude = bits & kMagnitude;
    return select(mask<State>(magnitude > static_cast<State>(FloatFormat<T>::kLargestOrdered)), kLoser,
                  flip(bits));
  }
  PK_HD static State next(State state, T x, std::uint64_t) {
    const State other = start(x, 0);
    return (kSmallestWins ? other < state : other > state) ? other : state;
  }
  PK_HD static T finish(State state, int) { return bit_cast<T>(flip(state)); }

 private:
  // Negative numbers are larger the smaller their magnitude is. Its own inverse.
  PK_HD static State flip(State bits) {
    return static_cast<State>(bits ^ (mask<State>(bits < 0) & kMagnitude));
  }
};

}  // namespace detail

template <class T>
struct Fold<T, Max> : detail::Extremum<T, false> {};
template <class T>
struct Fold<T, Min> : detail::Extremum<T, true> {};

/// The average of elements whose plain sum left the range of the accumulator: every element is first scaled
/// by the power of two that makes room for `nranks` of the largest, so that finite elements never average to
/// infinity. For rounding is monotonic: no sum exceeds that of the largest element `nranks` times, and that
/// one comes out as the largest element at most (tests/unit/numerics_reduction.cpp tries each number of
/// ranks). Callers use it where the plain average is not finite, so a NaN or an infinity among the elements
/// has its effect here, too.
template <class T>
class ScaledAverage {
 public:
  using Accumulator = typename Arithmetic<T>::Accumulator;

  PK_HD explicit ScaledAverage(int nranks) : nranks_(nranks) {
    int exponent = 0;
    while ((std::int64_t{1} << exponent) < nranks) ++exponent;
    down_ = power_of_two(-exponent);
    up_ = power_of_two(exponent);
  }
  PK_HD Accumulator start(T x) const { return multiply(Arithmetic<T>::widen(x), down_); }
  PK_HD Accumulator next(Accumulator state, T x) const { return add(state, start(x)); }
  PK_HD T finish(Accumulator state) const {
    return Arithmetic<T>::narrow(multiply(divide(state, nranks_), up_));
  }

 private:
  PK_HD static Accumulator power_of_two(int exponent) {
    constexpr int kMantissaBits = sizeof(Accumulator) == 8 ? 52 : 23;
    constexpr int kBias = sizeof(Accumulator) == 8 ? 1023 : 127;
    return bit_cast<Accumulator>(static_cast<BitsOf<Accumulator>>(kBias + exponent) << kMantissaBits);
  }
  int nranks_;
  Accumulator down_, up_;
};

}  // namespace pkcomm::numerics
