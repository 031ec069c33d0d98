// For host_reduce*.cpp alone: the one template of reduction.hpp, given a function for each instruction set by
// function attributes. Flags of a whole file would let the linker pick its copy of an inline function for
// everybody. Built with -ffp-contract=off, as AVX-512 brings fused multiply-add.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "numerics/float_environment.hpp"
#include "numerics/host_reduce.hpp"
#include "numerics/reduction.hpp"

namespace pkcomm::numerics::detail {

// Signed and unsigned integers wrap alike, so they share the functions of these operations.
template <class T, class Op>
using Shared =
    std::conditional_t<std::is_integral_v<T> && (std::is_same_v<Op, Sum> || std::is_same_v<Op, Prod> ||
                                                 std::is_same_v<Op, PreMulSum>),
                       BitsOf<T>, T>;

template <class T, class Op>
__attribute__((always_inline)) inline void reduce_rows(std::size_t count, int nranks,
                                                       const void* const* sources, void* dst,
                                                       const std::uint64_t* scalars) {
  const FloatEnvironment environment;
  const auto source = [sources](int rank) { return static_cast<const T*>(sources[rank]); };
  if constexpr (kUsesScalars<Op>) {
    reduce_elements<T, Op>(count, nranks, source, static_cast<T*>(dst), ScalarWords{scalars});
  } else {
    reduce_elements<T, Op>(count, nranks, source, static_cast<T*>(dst), NoScalars{});
  }
}

ReduceRows avx2_rows(pkcommDataType_t dtype, ReduceKind kind);
ReduceRows avx512_rows(pkcommDataType_t dtype, ReduceKind kind);

}  // namespace pkcomm::numerics::detail

// Defines the visitor `Name` (see visit_reduction) whose functions carry the given attributes.
#define PK_REDUCE_ROWS(Name, ...)                                                                            \
  struct Name {                                                                                              \
    template <class T, class Op>                                                                             \
    __attribute__((__VA_ARGS__)) static void rows(std::size_t count, int nranks, const void* const* sources, \
                                                  void* dst, const std::uint64_t* scalars) {                 \
      detail::reduce_rows<T, Op>(count, nranks, sources, dst, scalars);                                      \
    }                                                                                                        \
    template <class T, class Op>                                                                             \
    ReduceRows operator()() const {                                                                          \
      return &rows<detail::Shared<T, Op>, Op>;                                                               \
    }                                                                                                        \
  }
