// Reduces a piece of memory of every rank into one, by a whole block: what the direct schedules do with what has arrived.
// Same bits as everywhere else, since it folds by numerics/reduction.hpp in rank order.
//
// A rank's piece lies rank * stride behind `base`, be it in slots or in windows, but for this rank's own. Where everything is
// 16-byte aligned, a thread takes several vectors of one rank after the other, so that their loads are in flight together;
// the rest goes by words, which are put together from elements where they are not aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "collectives/one_way.hpp"
#include "numerics/reduction.hpp"
#include "platform/cuda/copy.cuh"

namespace pkcomm::cuda {

/// Where the ranks' pieces are.
struct Pieces {
  const std::byte* base;
  std::int64_t stride;
  const std::byte* own;
  int rank;

  __device__ const std::byte* operator()(int of) const { return of == rank ? own : base + of * stride; }

  /// From `sources` as exchange_staged() promises it.
  template <class Sources>
  __device__ static Pieces of(const Sources& sources, int rank, int nranks) {
    if (nranks == 1) return {nullptr, 0, sources(0), 0};
    const int one = rank == 0 ? 1 : 0;
    const int last = rank == nranks - 1 ? nranks - 2 : nranks - 1;
    const std::int64_t stride = one == last ? 0 : (sources(last) - sources(one)) / (last - one);
    return {sources(one) - one * stride, stride, sources(rank), rank};
  }
};

namespace detail {

struct alignas(16) Vector {
  std::uint64_t words[2];
};

/// `count` elements, 8 bytes at most; zeros behind them.
template <class T>
__device__ std::uint64_t load_elements(const std::byte* from, int count) {
  std::uint64_t word = 0;
  for (int i = 0; i < count; ++i) {
    const auto bits = reinterpret_cast<const numerics::BitsOf<T>*>(from)[i];
    word |= std::uint64_t{bits} << (8 * sizeof(T) * i) % 64;
  }
  return word;
}
template <class T>
__device__ void store_elements(std::byte* to, int count, std::uint64_t word) {
  for (int i = 0; i < count; ++i) {
    reinterpret_cast<numerics::BitsOf<T>*>(to)[i] =
        static_cast<numerics::BitsOf<T>>(word >> (8 * sizeof(T) * i) % 64);
  }
}

/// [begin, bytes) by words. Out of line: it is the way of what is short or not aligned, and of averages that overflow.
template <class T, class Op>
__device__ __noinline__ void reduce_words(Pieces pieces, int nranks, std::byte* to, std::uint64_t begin,
                                          std::uint64_t bytes, Scalars scalars) {
  const auto address = reinterpret_cast<std::uintptr_t>(pieces.base) |
                       static_cast<std::uintptr_t>(pieces.stride) |
                       reinterpret_cast<std::uintptr_t>(pieces.own) | reinterpret_cast<std::uintptr_t>(to);
  const bool aligned = address % 8 == 0;
  for (std::uint64_t at = begin + threadIdx.x * 8; at < bytes; at += blockDim.x * std::uint64_t{8}) {
    const int count = static_cast<int>((bytes - at < 8 ? bytes - at : 8) / sizeof(T));
    const bool whole = aligned && bytes - at >= 8;
    const auto word_of = [&](int rank) {
      const std::byte* const from = pieces(rank) + at;
      return whole ? *reinterpret_cast<const std::uint64_t*>(from) : load_elements<T>(from, count);
    };
    const std::uint64_t word = numerics::reduce_word<T, Op>(nranks, word_of, scalars);
    if (whole) {
      *reinterpret_cast<std::uint64_t*>(to + at) = word;
    } else {
      store_elements<T>(to + at, count, word);
    }
  }
}

template <class T, class Op>
__device__ __noinline__ std::uint64_t reduce_word_again(Pieces pieces, int nranks, std::uint64_t at) {
  return numerics::reduce_word<T, Op>(
      nranks, [&](int rank) { return *reinterpret_cast<const std::uint64_t*>(pieces(rank) + at); },
      numerics::NoScalars{});
}

// Vectors of a thread that are in flight together: what the registers hold beside their accumulators.
template <class T>
inline constexpr int kVectorsTogether = sizeof(T) == 1 ? 2 : 4;

/// The vectors [begin, ...) of this thread, `step` bytes apart, as far as they lie before `end`.
template <class T, class Op>
__device__ __forceinline__ void reduce_some(const Pieces& pieces, int nranks, std::byte* to,
                                            std::uint64_t begin, unsigned step, std::uint64_t end,
                                            const Scalars& scalars) {
  constexpr int kTogether = kVectorsTogether<T>;
  numerics::WordReducer<T, Op> reducers[kTogether][2];
  const auto take = [&](int rank, auto is_first) {
    const std::uint64_t scalar = numerics::kUsesScalars<Op> ? scalars(rank) : 0;
    const std::byte* const from = pieces(rank) + begin;
    Vector vectors[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      if (begin + k * step < end) vectors[k] = *reinterpret_cast<const Vector*>(from + k * step);
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if constexpr (is_first) {
          reducers[k][half].init(vectors[k].words[half], scalar);
        } else {
          reducers[k][half].add(vectors[k].words[half], scalar);
        }
      }
    }
  };
  take(0, std::true_type{});
#pragma unroll 1
  for (int rank = 1; rank < nranks; ++rank) take(rank, std::false_type{});
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    if (begin + k * step >= end) break;
    Vector result;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      result.words[half] = reducers[k][half].finish(nranks);
      if constexpr (numerics::kMayRetry<T, Op>) {
        if (!numerics::all_finite<T>(result.words[half])) [[unlikely]]
          result.words[half] = reduce_word_again<T, Op>(pieces, nranks, begin + k * step + half * 8);
      }
    }
    *reinterpret_cast<Vector*>(to + begin + k * step) = result;
  }
}

template <class T, class Op>
__device__ __forceinline__ void reduce_pieces(Pieces pieces, int nranks, std::byte* to, std::uint64_t bytes,
                                              Scalars scalars) {
  if (!numerics::kUsesScalars<Op> && nranks == 1) {
    if (pieces.own != to) copy_by_block(to, pieces.own, bytes);
    return;
  }
  __builtin_assume(numerics::kUsesScalars<Op> || nranks > 1);
  const auto address = reinterpret_cast<std::uintptr_t>(pieces.base) |
                       static_cast<std::uintptr_t>(pieces.stride) |
                       reinterpret_cast<std::uintptr_t>(pieces.own) | reinterpret_cast<std::uintptr_t>(to);
  std::uint64_t done = 0;
  if (address % sizeof(Vector) == 0) {
    done = bytes / sizeof(Vector) * sizeof(Vector);
    const unsigned step = blockDim.x * sizeof(Vector);
#pragma unroll 1
    for (std::uint64_t begin = threadIdx.x * sizeof(Vector); begin < done;
         begin += kVectorsTogether<T> * step)
      reduce_some<T, Op>(pieces, nranks, to, begin, step, done, scalars);
  }
  if (done < bytes) reduce_words<T, Op>(pieces, nranks, to, done, bytes, scalars);
}

}  // namespace detail

/// The reducer of the direct schedules for one type and operation: inlined wherever the schedules reduce.
template <class T, class Op>
class InlineReduction {
 public:
  static constexpr bool kReduces = true;

  template <class X, class Sources>
  __device__ void reduce(X& x, std::uint64_t bytes, int nranks, const Sources& sources, std::byte* to,
                         const Scalars& scalars) const {
    detail::reduce_pieces<T, Op>(Pieces::of(sources, x.view().rank, nranks), nranks, to, bytes, scalars);
    x.stored();
  }
};

namespace detail {

template <class T>
__device__ __noinline__ void reduce_pieces_by(numerics::ReduceKind kind, Pieces pieces, int nranks,
                                              std::byte* to, std::uint64_t bytes, Scalars scalars) {
  using enum numerics::ReduceKind;
  switch (kind) {
    case kSum:
      return reduce_pieces<T, numerics::Sum>(pieces, nranks, to, bytes, scalars);
    case kProd:
      return reduce_pieces<T, numerics::Prod>(pieces, nranks, to, bytes, scalars);
    case kMax:
      return reduce_pieces<T, numerics::Max>(pieces, nranks, to, bytes, scalars);
    case kMin:
      return reduce_pieces<T, numerics::Min>(pieces, nranks, to, bytes, scalars);
    case kAvg:
      return reduce_pieces<T, numerics::Avg>(pieces, nranks, to, bytes, scalars);
    case kPreMulSum:
      return reduce_pieces<T, numerics::PreMulSum>(pieces, nranks, to, bytes, scalars);
  }
}

}  // namespace detail

/// The same for one type and an operation known at run time. One call for all schedules and operations: a kernel for each
/// pair takes 3 s to compile, and a call saves some hundred bytes of registers for each thread.
template <class T>
class CalledReduction {
 public:
  static constexpr bool kReduces = true;

  __device__ explicit CalledReduction(numerics::ReduceKind kind) : kind_(kind) {}

  template <class X, class Sources>
  __device__ void reduce(X& x, std::uint64_t bytes, int nranks, const Sources& sources, std::byte* to,
                         const Scalars& scalars) const {
    detail::reduce_pieces_by<T>(kind_, Pieces::of(sources, x.view().rank, nranks), nranks, to, bytes,
                                scalars);
    x.stored();
  }

 private:
  numerics::ReduceKind kind_;
};

}  // namespace pkcomm::cuda
