// Runs a fold (fold.hpp) over whole arrays, on the host, and over 8-byte words, on host and device. Both give
// the same bits for the same elements, whatever the length, the position or the route: an element is reduced
// left to right from rank 0's own value and rounded to its type once. One rank's reduction without a
// multiplier is its elements unchanged.
//
// Arrays need the alignment of their elements alone; words come and go by value. Lanes of a word that hold no
// element may hold anything and influence nothing. `nranks` is 1 or more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"
#include "numerics/arithmetic.hpp"
#include "numerics/bits.hpp"
#include "numerics/fold.hpp"

namespace pkcomm::numerics {

// Builds that do not vectorise, such as those with sanitizers, need no warning of it.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

namespace detail {

// Accumulators a block: 2 KiB of the widest stay in the nearest cache beside the sources' lines.
inline constexpr std::size_t kBlock = 256;

// Reduces elements [begin, begin + count), count <= kBlock, into out[0, count). The first two and the last
// two steps are each one loop, so that 2 ranks need no accumulator in memory and 3 write it once. Inlined
// always, so that the loops are compiled for the instruction set of the caller (host_reduce.cpp).
PK_HD_POLICY
template <class T, class Op, class Source, class Scalars>
PK_HD __attribute__((always_inline)) inline void fold_block(std::size_t begin, std::size_t count, int nranks,
                                                            Source& source, T* out, const Scalars& scalars) {
  using F = Fold<T, Op>;
  const T* first = source(0) + begin;
  const std::uint64_t first_scalar = scalars(0);
  const T* last = source(nranks - 1) + begin;
  const std::uint64_t last_scalar = scalars(nranks - 1);
  if (nranks == 1) {
    PK_INDEPENDENT_ITERATIONS
    for (std::size_t i = 0; i < count; ++i) out[i] = F::finish(F::start(first[i], first_scalar), 1);
    return;
  }
  if (nranks == 2) {
    PK_INDEPENDENT_ITERATIONS
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = F::finish(F::next(F::start(first[i], first_scalar), last[i], last_scalar), 2);
    }
    return;
  }
  typename F::State state[kBlock];
  const T* second = source(1) + begin;
  const std::uint64_t second_scalar = scalars(1);
  for (std::size_t i = 0; i < count; ++i) {
    state[i] = F::next(F::start(first[i], first_scalar), second[i], second_scalar);
  }
  for (int rank = 2; rank < nranks - 1; ++rank) {
    const T* elements = source(rank) + begin;
    const std::uint64_t scalar = scalars(rank);
    for (std::size_t i = 0; i < count; ++i) state[i] = F::next(state[i], elements[i], scalar);
  }
  PK_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < count; ++i) out[i] = F::finish(F::next(state[i], last[i], last_scalar), nranks);
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

// Forms again those of out[0, count) that are not finite.
PK_HD_POLICY
template <class T, class Source>
PK_HD inline void average_again(std::size_t begin, std::size_t count, int nranks, Source& source, T* out) {
  const ScaledAverage<T> average(nranks);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_finite(out[i])) continue;
    auto state = average.start(source(0)[begin + i]);
    for (int rank = 1; rank < nranks; ++rank) state = average.next(state, source(rank)[begin + i]);
    out[i] = average.finish(state);
  }
}

}  // namespace detail

/// dst[i] = Op over the ranks r of source(r)[i], for i < n. `source(r)` is a `const T*`, asked for more than
/// once; `scalars(r)` the multiplier's word (NoScalars, ScalarWords). `dst` may be exactly one of the
/// sources; it overlaps none in any other way.
PK_HD_POLICY
template <class T, class Op, class Source, class Scalars>
PK_HD __attribute__((always_inline)) inline void reduce_elements(std::size_t n, int nranks, Source source,
                                                                 T* dst, const Scalars& scalars) {
  if (nranks == 1 && !kUsesScalars<Op>) {
    if (n > 0 && source(0) != dst) __builtin_memcpy(dst, source(0), n * sizeof(T));
    return;
  }
  for (std::size_t begin = 0; begin < n; begin += detail::kBlock) {
    const std::size_t count = n - begin < detail::kBlock ? n - begin : detail::kBlock;
    if constexpr (kMayRetry<T, Op>) {
      T out[detail::kBlock];  // until all is known to be well: dst may be a source
      detail::fold_block<T, Op>(begin, count, nranks, source, out, scalars);
      unsigned bad = 0;
      for (std::size_t i = 0; i < count; ++i) bad |= !is_finite(out[i]);
      if (bad != 0) detail::average_again(begin, count, nranks, source, out);
      __builtin_memcpy(dst + begin, out, count * sizeof(T));
    } else {
      detail::fold_block<T, Op>(begin, count, nranks, source, dst + begin, scalars);
    }
  }
}

namespace detail {

template <class T>
struct Lanes {
  static constexpr int kCount = static_cast<int>(8 / sizeof(T));
  T element[kCount];
};

// Forms again those lanes of `result` that are not finite.
PK_HD_POLICY
template <class T, class Words>
PK_HD inline std::uint64_t average_word_again(std::uint64_t result, int nranks, Words& words) {
  constexpr int kCount = Lanes<T>::kCount;
  const ScaledAverage<T> average(nranks);
  typename ScaledAverage<T>::Accumulator state[kCount];
  auto x = bit_cast<Lanes<T>>(words(0));
  PK_UNROLL
  for (int i = 0; i < kCount; ++i) state[i] = average.start(x.element[i]);
  for (int rank = 1; rank < nranks; ++rank) {
    x = bit_cast<Lanes<T>>(words(rank));
    PK_UNROLL
    for (int i = 0; i < kCount; ++i) state[i] = average.next(state[i], x.element[i]);
  }
  auto lanes = bit_cast<Lanes<T>>(result);
  PK_UNROLL
  for (int i = 0; i < kCount; ++i) {
    if (!is_finite(lanes.element[i])) lanes.element[i] = average.finish(state[i]);
  }
  return bit_cast<std::uint64_t>(lanes);
}

}  // namespace detail

/// Whether no element of an 8-byte word of floats is infinite or NaN.
template <class T>
PK_HD inline bool all_finite(std::uint64_t word) {
  const auto lanes = bit_cast<detail::Lanes<T>>(word);
  bool all = true;
  PK_UNROLL
  for (int i = 0; i < detail::Lanes<T>::kCount; ++i) all = all && is_finite(lanes.element[i]);
  return all;
}

/// Folds 8-byte words of 8 / sizeof(T) elements, as packets carry them; ranks are taken in from 0 upward. An
/// average of floats that comes out infinite or NaN is not final (kMayRetry): use reduce_word, unless Op is
/// known not to be Avg.
template <class T, class Op>
class WordReducer {
 public:
  PK_HD void init(std::uint64_t word, std::uint64_t scalar) {
    first_ = word;
    const auto x = bit_cast<detail::Lanes<T>>(word);
    PK_UNROLL
    for (int i = 0; i < kCount; ++i) state_[i] = F::start(x.element[i], scalar);
  }
  PK_HD void add(std::uint64_t word, std::uint64_t scalar) {
    const auto x = bit_cast<detail::Lanes<T>>(word);
    PK_UNROLL
    for (int i = 0; i < kCount; ++i) state_[i] = F::next(state_[i], x.element[i], scalar);
  }
  PK_HD std::uint64_t finish(int nranks) const {
    if (nranks == 1 && !kUsesScalars<Op>) return first_;
    detail::Lanes<T> result;
    PK_UNROLL
    for (int i = 0; i < kCount; ++i) result.element[i] = F::finish(state_[i], nranks);
    return bit_cast<std::uint64_t>(result);
  }

 private:
  using F = Fold<T, Op>;
  static constexpr int kCount = detail::Lanes<T>::kCount;
  typename F::State state_[kCount];
  std::uint64_t first_;
};

/// The reduced word of the words that `words(r)` gives, called for r = 0, 1, ... nranks - 1 in this order;
/// and once more in this order where an average of floats was not finite, so that it must be able to give the
/// same words again.
PK_HD_POLICY
template <class T, class Op, class Words, class Scalars>
PK_HD inline std::uint64_t reduce_word(int nranks, Words words, const Scalars& scalars) {
  WordReducer<T, Op> reducer;
  reducer.init(words(0), scalars(0));
  for (int rank = 1; rank < nranks; ++rank) reducer.add(words(rank), scalars(rank));
  const std::uint64_t result = reducer.finish(nranks);
  if constexpr (kMayRetry<T, Op>) {
    if (nranks > 1 && !all_finite<T>(result)) {
      return detail::average_word_again<T>(result, nranks, words);
    }
  }
  return result;
}

}  // namespace pkcomm::numerics
