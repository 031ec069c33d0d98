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

/// Where the result goes: here, and to the same place of the first `peers` ranks behind this one.
struct Targets {
  std::byte* own;
  std::byte* base = nullptr;  // rank 0's
  std::int64_t stride = 0;
  int rank = 0, nranks = 1, peers = 0;

  template <class PlaceOf>
  __device__ static Targets all(std::byte* own, const PlaceOf& place_of, int rank, int nranks) {
    return {own, place_of(0), nranks > 1 ? place_of(1) - place_of(0) : 0, rank, nranks, nranks - 1};
  }
  template <class Unit>
  __device__ __forceinline__ void store(std::uint64_t at, const Unit& unit) const {
    *reinterpret_cast<Unit*>(own + at) = unit;
    int peer = rank;
#pragma unroll 1
    for (int i = 0; i < peers; ++i) {
      peer = peer + 1 < nranks ? peer + 1 : 0;
      *reinterpret_cast<Unit*>(base + peer * stride + at) = unit;
    }
  }
};

namespace detail {

/// Whether all of it is a multiple of `unit` bytes away from address 0.
__device__ inline bool aligned(const Pieces& pieces, const Targets& targets, unsigned unit) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(pieces.base) | static_cast<std::uintptr_t>(pieces.stride) |
      reinterpret_cast<std::uintptr_t>(pieces.own) | reinterpret_cast<std::uintptr_t>(targets.own) |
      reinterpret_cast<std::uintptr_t>(targets.base) | static_cast<std::uintptr_t>(targets.stride);
  return address % unit == 0;
}

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
__device__ void store_elements(const Targets& targets, std::uint64_t at, int count, std::uint64_t word) {
  for (int i = 0; i < count; ++i)
    targets.store(at + i * sizeof(T), static_cast<numerics::BitsOf<T>>(word >> (8 * sizeof(T) * i) % 64));
}

/// The words at begin, begin + step, ... of this thread; the last one may be cut off by `end`. Out of line: it is the way of
/// what is short or not aligned, and of averages that overflow.
template <class T, class Op>
__device__ __noinline__ void reduce_words(Pieces pieces, int nranks, Targets targets, std::uint64_t begin,
                                          unsigned step, std::uint64_t end, Scalars scalars) {
  const bool words = aligned(pieces, targets, 8);
  for (std::uint64_t at = begin; at < end; at += step) {
    const int count = static_cast<int>((end - at < 8 ? end - at : 8) / sizeof(T));
    const bool whole = words && end - at >= 8;
    const auto word_of = [&](int rank) {
      const std::byte* const from = pieces(rank) + at;
      return whole ? *reinterpret_cast<const std::uint64_t*>(from) : load_elements<T>(from, count);
    };
    const std::uint64_t word = numerics::reduce_word<T, Op>(nranks, word_of, scalars);
    if (whole) {
      targets.store(at, word);
    } else {
      store_elements<T>(targets, at, count, word);
    }
  }
}

// Vectors of a thread that are in flight together: what the registers hold beside their accumulators.
template <class T>
inline constexpr int kVectorsTogether = sizeof(T) == 1 ? 2 : 4;

/// The vectors [begin, ...) of this thread, `step` bytes apart, as far as they lie before `end`.
template <class T, class Op>
__device__ __forceinline__ void reduce_some(const Pieces& pieces, int nranks, const Targets& targets,
                                            std::uint64_t begin, unsigned step, std::uint64_t end,
                                            const Scalars& scalars) {
  constexpr int kTogether = kVectorsTogether<T>;
  numerics::WordReducer<T, Op> reducers[kTogether][2];
  const auto take = [&](int rank, auto is_first) {
    const std::uint64_t scalar = numerics::kUsesScalars<Op> ? scalars(rank) : 0;
    const std::byte* const from = pieces(rank) + begin;
    Vector vectors[kTogether] = {};
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
  Vector results[kTogether];
  bool good = true;
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      results[k].words[half] = reducers[k][half].finish(nranks);
      if constexpr (numerics::kMayRetry<T, Op>)
        good = good && numerics::all_finite<T>(results[k].words[half]);
    }
  }
  if (numerics::kMayRetry<T, Op> && !good) [[unlikely]] {
    const std::uint64_t own_end = begin + kTogether * step < end ? begin + kTogether * step : end;
#pragma unroll 1
    for (int half = 0; half < 2; ++half)
      reduce_words<T, Op>(pieces, nranks, targets, begin + half * 8, step, own_end, scalars);
    return;
  }
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    if (begin + k * step < end) targets.store(begin + k * step, results[k]);
  }
}

template <class T, class Op>
__device__ __forceinline__ void reduce_pieces(const Pieces& pieces, int nranks, const Targets& targets,
                                              std::uint64_t bytes, const Scalars& scalars) {
  if (!numerics::kUsesScalars<Op> && nranks == 1) {
    if (pieces.own != targets.own) copy_by_block<kVectorsTogether<T>>(targets.own, pieces.own, bytes);
    return;
  }
  __builtin_assume(numerics::kUsesScalars<Op> || nranks > 1);
  std::uint64_t done = 0;
  if (aligned(pieces, targets, sizeof(Vector))) {
    done = bytes / sizeof(Vector) * sizeof(Vector);
    const unsigned step = blockDim.x * sizeof(Vector);
#pragma unroll 1
    for (std::uint64_t begin = threadIdx.x * sizeof(Vector); begin < done;
         begin += kVectorsTogether<T> * step)
      reduce_some<T, Op>(pieces, nranks, targets, begin, step, done, scalars);
  }
  if (done < bytes) {
    reduce_words<T, Op>(pieces, nranks, targets, done + threadIdx.x * 8, blockDim.x * 8, bytes, scalars);
  }
}

template <class T>
__device__ __noinline__ void reduce_pieces_by(numerics::ReduceKind kind, Pieces pieces, int nranks,
                                              Targets targets, std::uint64_t bytes, Scalars scalars) {
  using enum numerics::ReduceKind;
  switch (kind) {
    case kSum:
      return reduce_pieces<T, numerics::Sum>(pieces, nranks, targets, bytes, scalars);
    case kProd:
      return reduce_pieces<T, numerics::Prod>(pieces, nranks, targets, bytes, scalars);
    case kMax:
      return reduce_pieces<T, numerics::Max>(pieces, nranks, targets, bytes, scalars);
    case kMin:
      return reduce_pieces<T, numerics::Min>(pieces, nranks, targets, bytes, scalars);
    case kAvg:
      return reduce_pieces<T, numerics::Avg>(pieces, nranks, targets, bytes, scalars);
    case kPreMulSum:
      return reduce_pieces<T, numerics::PreMulSum>(pieces, nranks, targets, bytes, scalars);
  }
}

}  // namespace detail

/// What the reducers of the direct schedules share. `Derived` has run(pieces, nranks, targets, bytes, scalars).
template <class Derived>
class BulkReduction {
 public:
  static constexpr bool kReduces = true;

  template <class X, class Sources>
  __device__ void reduce(X& x, std::uint64_t bytes, int nranks, const Sources& sources, std::byte* to,
                         const Scalars& scalars) const {
    run(x, bytes, nranks, sources, {to}, scalars);
  }
  /// Straight from the registers to all ranks.
  template <class X, class Sources, class PlaceOf>
  __device__ void reduce_to_all(X& x, std::uint64_t bytes, int nranks, const Sources& sources, std::byte* to,
                                const PlaceOf& place_of, const Scalars& scalars) const {
    run(x, bytes, nranks, sources, Targets::all(to, place_of, x.view().rank, nranks), scalars);
  }

 private:
  template <class X, class Sources>
  __device__ void run(X& x, std::uint64_t bytes, int nranks, const Sources& sources, const Targets& targets,
                      const Scalars& scalars) const {
    static_cast<const Derived&>(*this).run(Pieces::of(sources, x.view().rank, nranks), nranks, targets, bytes,
                                           scalars);
    x.stored();
  }
};

/// For one type and operation: inlined wherever the schedules reduce.
template <class T, class Op>
class InlineReduction : public BulkReduction<InlineReduction<T, Op>> {
 public:
  __device__ void run(const Pieces& pieces, int nranks, const Targets& targets, std::uint64_t bytes,
                      const Scalars& scalars) const {
    detail::reduce_pieces<T, Op>(pieces, nranks, targets, bytes, scalars);
  }
};

/// For one type and an operation known at run time. One call for all schedules and operations: a kernel for each pair takes
/// seconds to compile, and a call saves some hundred bytes of registers for each thread.
template <class T>
class CalledReduction : public BulkReduction<CalledReduction<T>> {
 public:
  __device__ explicit CalledReduction(numerics::ReduceKind kind) : kind_(kind) {}
  __device__ void run(const Pieces& pieces, int nranks, const Targets& targets, std::uint64_t bytes,
                      const Scalars& scalars) const {
    detail::reduce_pieces_by<T>(kind_, pieces, nranks, targets, bytes, scalars);
  }

 private:
  numerics::ReduceKind kind_;
};

}  // namespace pkcomm::cuda
