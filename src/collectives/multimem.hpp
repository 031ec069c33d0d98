// multimem: reductions and multicasts by the switch, between windows. What the switch does is a policy of its own:
//   Switch::reduce(x, op, offset, bytes, to)   reduce what all ranks have at `offset` of their parts into own memory
//   Switch::store(x, offset, from, bytes)      write to `offset` of every rank's part, the caller's included
//   Switch::drain(x)                           before anything is published
// The schedule, the announcements and the completion words are those of direct_zero_copy.hpp. With hardware: 1 + 1/nranks
// of the buffer per port for all_reduce.
#pragma once

#include "collectives/direct_zero_copy.hpp"

namespace pkcomm {

PK_HD_POLICY
template <class Switch, class X>
PK_HD bool multimem(X& x, const Operation& op, Switch& fabric) {
  const View& view = x.view();
  const Pattern pattern{op};
  const int me = view.rank, nranks = view.nranks;
  const Turn turn = enter<true>(x, op);
  const auto all = [](int) { return true; };
  if (!detail::await_entries(x, turn, all)) return false;
  switch (op.collective) {
    case Collective::kAllReduce: {
      const Part slice = slice_of(op.block, me, nranks);
      const Part column = column_of(slice.bytes, x.cta(), x.ctas());
      const std::uint64_t at = slice.begin + column.begin;
      fabric.reduce(x, op, op.send_offset + at, column.bytes, op.recv + at);
      x.barrier();
      fabric.store(x, op.recv_offset + at, op.recv + at, column.bytes);
      break;
    }
    case Collective::kReduceScatter: {
      const Part column = column_of(op.block, x.cta(), x.ctas());
      fabric.reduce(x, op, op.send_offset + pattern.send_at(me) + column.begin, column.bytes,
                    op.recv + column.begin);
      break;
    }
    default: {  // all_gather, broadcast
      const Part column = column_of(op.block, x.cta(), x.ctas());
      if (pattern.moves(me, me)) {
        fabric.store(x, op.recv_offset + pattern.recv_at(me) + column.begin, op.send + column.begin,
                     column.bytes);
      }
    }
  }
  fabric.drain(x);
  detail::tell_once(x, turn, all);
  if (!detail::await_once(x, turn, all)) return false;
  return x.leave(turn.word, true);
}

}  // namespace pkcomm
