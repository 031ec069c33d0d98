// The kernels that only move: all_gather, all_to_all, broadcast, gather, scatter, barrier.
//
//   pkcomm_move_one_shot_ll[_of_<n>], pkcomm_all_gather_one_shot_ll_of_<n>, pkcomm_broadcast_two_shot_ll[_of_<n>]
//   pkcomm_move_direct_ldst, pkcomm_barrier_one_shot_ll
//
// _of_<n>: for n ranks, whole aligned words.
#include "collectives/cuda/kernel.cuh"
#include "collectives/direct.hpp"
#include "collectives/movers.hpp"
#include "collectives/one_shot_ll.hpp"
#include "collectives/two_shot_ll.hpp"

using namespace pkcomm;

PK_KERNEL(pkcomm_barrier_one_shot_ll, 0, barrier_ll(x, op))
PK_KERNEL(pkcomm_move_direct_ldst, 0, direct_movement<RegisterMover>(x, op))
PK_KERNEL(pkcomm_move_one_shot_ll, 0, one_shot_ll<Movement, AnyWords>(x, op, Pattern{op}))
PK_KERNEL(pkcomm_broadcast_two_shot_ll, 0, two_shot_ll<Movement>(x, op))

#define PK_MOVEMENT_OF(ranks)                                           \
  PK_KERNEL(pkcomm_move_one_shot_ll_of_##ranks, ranks,                  \
            one_shot_ll<Movement, WholeWords>(x, op, Pattern{op}))      \
  PK_KERNEL(pkcomm_all_gather_one_shot_ll_of_##ranks, ranks,            \
            one_shot_ll<Movement, WholeWords>(x, op, FullExchange{op})) \
  PK_KERNEL(pkcomm_broadcast_two_shot_ll_of_##ranks, ranks, two_shot_ll<Movement, WholeWords>(x, op))

PK_MOVEMENT_OF(2)
PK_MOVEMENT_OF(4)
PK_MOVEMENT_OF(8)
