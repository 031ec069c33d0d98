// direct between windows: no staging. Peers touch user memory, so each waits until the owner of that memory has entered
// the operation itself, and nobody leaves while peers may still read what it lent.
//
//   push    all_gather, all_to_all, broadcast, scatter: write into the receivers' windows, then [landed]
//   pull    reduce_scatter, reduce, gather: read from the senders' windows, then [done], which the senders wait for
//   both    all_reduce: each rank reduces its slice from all inputs and writes it into all outputs, then [landed], which
//           proves to each that its input has been read and its output is complete
//
//   [announce]        release by enter<true>, acquire by await_entry: the buffers of that rank may be touched
//   [landed], [done]  release: publish of {m, 1} behind the header;  acquire: await_once
#pragma once

#include "collectives/direct_staged.hpp"

namespace pkcomm {

namespace detail {

PK_HD_POLICY
template <class X>
PK_HD void tell_once(X& x, const Turn& turn, int peer) {
  write_header(x, turn, peer);
  x.publish(x.view().arrive(peer, 0, x.cta(), x.view().rank), make_word(turn.m, 1), peer);
}
PK_HD_POLICY
template <class X>
PK_HD bool await_once(X& x, const Turn& turn, int peer) {
  return x.await(x.view().arrive(x.view().rank, 0, x.cta(), peer), make_word(turn.m, 1), peer,
                 "completion") &&
         check_header(x, turn, peer);
}
PK_HD_POLICY
template <class X>
PK_HD bool await_all_entries(X& x, const Turn& turn) {
  for (int step = 1; step < x.view().nranks; ++step) {
    if (!await_entry(x, turn, (x.view().rank + step) % x.view().nranks)) return false;
  }
  return true;
}

// Pieces in which a reduced slice is pushed on while it is still in the cache.
inline constexpr std::uint64_t kPiece = 64 << 10;

}  // namespace detail

PK_HD_POLICY
template <class Mover, class X>
PK_HD bool push_zero_copy(X& x, const Operation& op) {
  const View& view = x.view();
  const Pattern pattern{op};
  const int me = view.rank, nranks = view.nranks;
  const Turn turn = enter<true>(x, op);
  const Part column = column_of(op.block, x.cta(), x.ctas());
  for (int step = 1; step < nranks; ++step) {
    const int peer = (me + step) % nranks;
    if (!pattern.moves(me, peer)) continue;
    if (!await_entry(x, turn, peer)) return false;
    Mover::copy(x, view.at(peer, op.recv_offset + pattern.recv_at(me)) + column.begin,
                pattern.source(peer) + column.begin, column.bytes);
  }
  Mover::drain(x);
  for (int step = 1; step < nranks; ++step) {
    const int peer = (me + step) % nranks;
    if (pattern.moves(me, peer)) detail::tell_once(x, turn, peer);
  }
  if (pattern.moves(me, me) && pattern.source(me) != pattern.target(me)) {
    x.copy(pattern.target(me) + column.begin, pattern.source(me) + column.begin, column.bytes);
  }
  for (int step = 1; step < nranks; ++step) {
    const int peer = (me + step) % nranks;
    if (pattern.moves(peer, me) && !detail::await_once(x, turn, peer)) return false;
  }
  return x.leave(turn.word,
                 op.collective == Collective::kAllGather || op.collective == Collective::kAllToAll);
}

PK_HD_POLICY
template <class Mover, class X, class Reducer>
PK_HD bool pull_zero_copy(X& x, const Operation& op, const Reducer& reducer) {
  const View& view = x.view();
  const Pattern pattern{op};
  const int me = view.rank, nranks = view.nranks;
  const Turn turn = enter<true>(x, op);
  if (Reducer::kReduces && op.kind == numerics::ReduceKind::kPreMulSum &&
      !(licence(x, turn.m) && exchange_scalars(x, op, turn))) {
    return false;
  }
  const Part column = column_of(op.block, x.cta(), x.ctas());
  if (pattern.receives(me)) {
    const auto source_at = [&](int source) -> const std::byte* {
      return (source == me ? op.send : view.at(source, op.send_offset)) + pattern.send_at(me) + column.begin;
    };
    if constexpr (Reducer::kReduces) {
      if (!detail::await_all_entries(x, turn)) return false;
      reducer.reduce(x, column.bytes, nranks, source_at, op.recv + column.begin, Scalars{view, op, turn.m});
    } else {
      if (pattern.source(me) != pattern.target(me)) {
        x.copy(pattern.target(me) + column.begin, source_at(me), column.bytes);
      }
      for (int step = 1; step < nranks; ++step) {
        const int source = (me + step) % nranks;
        if (!await_entry(x, turn, source)) return false;
        Mover::copy(x, pattern.target(source) + column.begin, source_at(source), column.bytes);
      }
      Mover::drain(x);
    }
  }
  for (int step = 1; step < nranks; ++step) {
    const int source = (me + step) % nranks;
    if (pattern.moves(source, me)) detail::tell_once(x, turn, source);
  }
  for (int step = 1; step < nranks; ++step) {
    const int reader = (me + step) % nranks;
    if (pattern.moves(me, reader) && !detail::await_once(x, turn, reader)) return false;
  }
  return x.leave(turn.word, op.collective == Collective::kReduceScatter);
}

PK_HD_POLICY
template <class Mover, class X, class Reducer>
PK_HD bool all_reduce_zero_copy(X& x, const Operation& op, const Reducer& reducer) {
  const View& view = x.view();
  const int me = view.rank, nranks = view.nranks;
  const Turn turn = enter<true>(x, op);
  if (op.kind == numerics::ReduceKind::kPreMulSum && !(licence(x, turn.m) && exchange_scalars(x, op, turn)))
    return false;
  if (!detail::await_all_entries(x, turn)) return false;
  const Part slice = slice_of(op.block, me, nranks);
  const Part column = column_of(slice.bytes, x.cta(), x.ctas());
  for (std::uint64_t done = 0; done < column.bytes; done += detail::kPiece) {
    const Part piece = clip(done, detail::kPiece, column.bytes);
    const std::uint64_t at = slice.begin + column.begin + piece.begin;
    reducer.reduce(
        x, piece.bytes, nranks,
        [&](int source) -> const std::byte* {
          return (source == me ? op.send : view.at(source, op.send_offset)) + at;
        },
        op.recv + at, Scalars{view, op, turn.m});
    x.barrier();
    for (int step = 1; step < nranks; ++step) {
      const int peer = (me + step) % nranks;
      Mover::copy(x, view.at(peer, op.recv_offset) + at, op.recv + at, piece.bytes);
    }
  }
  Mover::drain(x);
  for (int step = 1; step < nranks; ++step) detail::tell_once(x, turn, (me + step) % nranks);
  for (int step = 1; step < nranks; ++step) {
    if (!detail::await_once(x, turn, (me + step) % nranks)) return false;
  }
  return x.leave(turn.word, true);
}

}  // namespace pkcomm
