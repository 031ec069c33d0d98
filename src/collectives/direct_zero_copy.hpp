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

// Each with every peer for which `concerns(peer)`; waits are for all of them at once.

PK_HD_POLICY
template <class X, class Concerns>
PK_HD bool await_entries(X& x, const Turn& turn, const Concerns& concerns) {
  return await_peers(x, [&](int peer) {
    if (concerns(peer)) await_entry(x, turn, peer);
  });
}
/// Behind a drain.
PK_HD_POLICY
template <class X, class Concerns>
PK_HD void tell_once(X& x, const Turn& turn, const Concerns& concerns) {
  const View& view = x.view();
  each_peer(x, [&](int peer) {
    if (!concerns(peer)) return;
    x.store(view.header(peer, turn.m, x.cta(), view.rank), turn.word);
    x.publish(view.arrive(peer, 0, x.cta(), view.rank), make_word(turn.m, 1), peer);
  });
}
PK_HD_POLICY
template <class X, class Concerns>
PK_HD bool await_once(X& x, const Turn& turn, const Concerns& concerns) {
  const View& view = x.view();
  return await_peers(x, [&](int peer) {
    if (concerns(peer) &&
        x.await(view.arrive(view.rank, 0, x.cta(), peer), make_word(turn.m, 1), peer, "completion")) {
      check_header(x, turn, peer);
    }
  });
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
  const auto goes_to = [&](int peer) { return pattern.moves(me, peer); };
  if (!detail::await_entries(x, turn, goes_to)) return false;
  for (int step = 1; step < nranks; ++step) {
    const int peer = rank_at(view, step);
    if (!goes_to(peer)) continue;
    Mover::copy(x, view.at(peer, op.recv_offset + pattern.recv_at(me)) + column.begin,
                pattern.source(peer) + column.begin, column.bytes);
  }
  Mover::drain(x);
  detail::tell_once(x, turn, goes_to);
  if (pattern.moves(me, me) && pattern.source(me) != pattern.target(me)) {
    x.copy(pattern.target(me) + column.begin, pattern.source(me) + column.begin, column.bytes);
  }
  if (!detail::await_once(x, turn, [&](int peer) { return pattern.moves(peer, me); })) return false;
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
  const auto comes_from = [&](int peer) { return pattern.moves(peer, me); };
  if (pattern.receives(me)) {
    const auto source_at = [&](int source) -> const std::byte* {
      return (source == me ? op.send : view.at(source, op.send_offset)) + pattern.send_at(me) + column.begin;
    };
    if (!detail::await_entries(x, turn, comes_from)) return false;
    if constexpr (Reducer::kReduces) {
      reducer.reduce(x, column.bytes, nranks, source_at, op.recv + column.begin, Scalars(view, op, turn.m));
    } else {
      if (pattern.source(me) != pattern.target(me)) {
        x.copy(pattern.target(me) + column.begin, source_at(me), column.bytes);
      }
      for (int step = 1; step < nranks; ++step) {
        const int source = rank_at(view, step);
        Mover::copy(x, pattern.target(source) + column.begin, source_at(source), column.bytes);
      }
    }
  }
  Mover::drain(x);
  detail::tell_once(x, turn, comes_from);
  if (!detail::await_once(x, turn, [&](int reader) { return pattern.moves(me, reader); })) return false;
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
  const auto all = [](int) { return true; };
  if (!detail::await_entries(x, turn, all)) return false;
  const Scalars scalars(view, op, turn.m);
  const Part slice = slice_of(op.block, me, nranks);
  const Part column = column_of(slice.bytes, x.cta(), x.ctas());
  for (std::uint64_t done = 0; done < column.bytes; done += detail::kPiece) {
    const Part piece = clip(done, detail::kPiece, column.bytes);
    const std::uint64_t at = slice.begin + column.begin + piece.begin;
    detail::reduce_to_all<Mover>(
        x, reducer, piece.bytes,
        [&](int source) -> const std::byte* {
          return (source == me ? op.send : view.at(source, op.send_offset)) + at;
        },
        op.recv + at, [&](int peer) { return view.at(peer, op.recv_offset) + at; }, scalars);
  }
  Mover::drain(x);
  detail::tell_once(x, turn, all);
  if (!detail::await_once(x, turn, all)) return false;
  return x.leave(turn.word, true);
}

}  // namespace pkcomm
