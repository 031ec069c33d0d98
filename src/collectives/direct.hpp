// direct: which of its schedules serves a call. A mover says how the bytes move; see movers.hpp.
#pragma once

#include "collectives/direct_staged.hpp"
#include "collectives/direct_zero_copy.hpp"
#include "collectives/one_shot_ll.hpp"

namespace pkcomm {

/// all_gather, all_to_all, broadcast, gather, scatter.
PK_HD_POLICY
template <class Mover, class X>
PK_HD bool direct_movement(X& x, const Operation& op) {
  if (!op.zero_copy) return exchange_staged<Mover>(x, op, Movement{});
  return op.collective == Collective::kGather ? pull_zero_copy<Mover>(x, op, Movement{})
                                              : push_zero_copy<Mover>(x, op);
}

/// all_reduce, reduce, reduce_scatter. `reducer` as for exchange_staged.
PK_HD_POLICY
template <class Mover, class X, class Reducer>
PK_HD bool direct_reduction(X& x, const Operation& op, const Reducer& reducer) {
  if (op.zero_copy) {
    return op.collective == Collective::kAllReduce ? all_reduce_zero_copy<Mover>(x, op, reducer)
                                                   : pull_zero_copy<Mover>(x, op, reducer);
  }
  return op.collective == Collective::kReduceScatter ? exchange_staged<Mover>(x, op, reducer)
                                                     : reduce_twice_staged<Mover>(x, op, reducer);
}

}  // namespace pkcomm
