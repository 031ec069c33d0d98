// The kernels that reduce elements of one type. A file a type, so that they compile side by side.
//
//   pkcomm_reduce_one_shot_ll_<type>_<op>             any call
//   pkcomm_reduce_one_shot_ll_<type>_<op>_of_<n>      n ranks, whole aligned words
//   pkcomm_all_reduce_one_shot_ll_<type>_<op>_of_<n>  the same of all_reduce alone
//   pkcomm_reduce_two_shot_ll_<type>_<op>[_of_<n>]    all_reduce and reduce
//   pkcomm_reduce_direct_ldst_<type>[_<op>]           any call; of any operation
//
// What a kernel for one number of ranks gains is in docs/design/0002-one-source.md.
#pragma once

#include "collectives/cuda/bulk_reduction.cuh"
#include "collectives/cuda/kernel.cuh"
#include "collectives/direct.hpp"
#include "collectives/movers.hpp"
#include "collectives/one_shot_ll.hpp"
#include "collectives/two_shot_ll.hpp"

namespace pkcomm::cuda {

template <class Combine, class X>
__device__ void reduce_one_shot(X& x, const Operation& op) {
  if constexpr (X::kRanks > 0) {
    one_shot_ll<Combine, WholeWords>(x, op, Pattern{op});
  } else {
    one_shot_ll<Combine, AnyWords>(x, op, Pattern{op});
  }
}
template <class Combine, class X>
__device__ void all_reduce_one_shot(X& x, const Operation& op) {
  one_shot_ll<Combine, WholeWords>(x, op, FullExchange{op});
}
template <class Combine, class X>
__device__ void reduce_two_shot(X& x, const Operation& op) {
  if constexpr (X::kRanks > 0) {
    two_shot_ll<Combine, WholeWords>(x, op);
  } else {
    two_shot_ll<Combine, AnyWords>(x, op);
  }
}

}  // namespace pkcomm::cuda

// In what follows `name` and `op_name` are those of numerics::name(), `type` and `tag` what they stand for.

#define PK_LL_KERNEL(what, schedule, function, suffix, ranks, name, type, op_name, tag) \
  PK_KERNEL(pkcomm_##what##_##schedule##_##name##_##op_name##suffix, ranks,             \
            pkcomm::cuda::function<pkcomm::WordReduction<type, pkcomm::numerics::tag>>(x, op))

/// Any call with one operation.
#define PK_REDUCTION(name, type, op_name, tag)                                                     \
  PK_LL_KERNEL(reduce, one_shot_ll, reduce_one_shot, /* no suffix */, 0, name, type, op_name, tag) \
  PK_LL_KERNEL(reduce, two_shot_ll, reduce_two_shot, /* no suffix */, 0, name, type, op_name, tag)

/// Any call with one type.
#define PK_REDUCTIONS(name, type)                \
  PK_REDUCTION(name, type, sum, Sum)             \
  PK_REDUCTION(name, type, prod, Prod)           \
  PK_REDUCTION(name, type, max, Max)             \
  PK_REDUCTION(name, type, min, Min)             \
  PK_REDUCTION(name, type, avg, Avg)             \
  PK_REDUCTION(name, type, premulsum, PreMulSum) \
  PK_KERNEL(                                     \
      pkcomm_reduce_direct_ldst_##name, 0,       \
      pkcomm::direct_reduction<pkcomm::RegisterMover>(x, op, pkcomm::cuda::CalledReduction<type>(op.kind)))

/// An operation that is common in all_reduce: kernels for the common numbers of ranks.
#define PK_COMMON_ALL_REDUCE_OF(ranks, name, type, op_name, tag)                                           \
  PK_LL_KERNEL(all_reduce, one_shot_ll, all_reduce_one_shot, _of_##ranks, ranks, name, type, op_name, tag) \
  PK_LL_KERNEL(reduce, two_shot_ll, reduce_two_shot, _of_##ranks, ranks, name, type, op_name, tag)
#define PK_COMMON_ALL_REDUCE(name, type, op_name, tag) \
  PK_COMMON_ALL_REDUCE_OF(2, name, type, op_name, tag) \
  PK_COMMON_ALL_REDUCE_OF(4, name, type, op_name, tag) \
  PK_COMMON_ALL_REDUCE_OF(8, name, type, op_name, tag)

/// One that is common in reduce_scatter and with large buffers, too.
#define PK_COMMON_REDUCTION(name, type, op_name, tag)                                    \
  PK_COMMON_ALL_REDUCE(name, type, op_name, tag)                                         \
  PK_LL_KERNEL(reduce, one_shot_ll, reduce_one_shot, _of_2, 2, name, type, op_name, tag) \
  PK_LL_KERNEL(reduce, one_shot_ll, reduce_one_shot, _of_4, 4, name, type, op_name, tag) \
  PK_LL_KERNEL(reduce, one_shot_ll, reduce_one_shot, _of_8, 8, name, type, op_name, tag) \
  PK_KERNEL(pkcomm_reduce_direct_ldst_##name##_##op_name, 0,                             \
            pkcomm::direct_reduction<pkcomm::RegisterMover>(                             \
                x, op, pkcomm::cuda::InlineReduction<type, pkcomm::numerics::tag>()))
