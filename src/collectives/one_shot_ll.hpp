// one_shot_ll: every rank sends its blocks straight to those that need them, as LL packets; whoever needs a reduction
// does it for itself. One hop, no flag, no fence: the least latency there is.
//
// Each rank sends (nranks - 1) blocks, twice their bytes on the wire. Any pointers; aligned to the element. CTA c does
// column c of every block and waits for column c of the peers alone. Writers of a slot: its source rank. Source: the LL
// protocol of NCCL, with 64-bit tags.
#pragma once

#include "collectives/one_way.hpp"
#include "numerics/reduction.hpp"

namespace pkcomm {

/// Combines nothing: blocks are copied to their places.
struct Movement {
  static constexpr bool kReduces = false;
  static constexpr bool kScaled = false;
};
/// Reduces words by type and operation.
template <class T, class Op>
struct WordReduction {
  static constexpr bool kReduces = true;
  static constexpr bool kScaled = numerics::kUsesScalars<Op>;

  /// For the calling thread: this rank's `own` word and the packets of the others, reduced in rank order.
  PK_HD_POLICY
  template <class X, class PacketOf, class ScalarOf>
  PK_HD static std::uint64_t reduce(X& x, std::uint64_t own, std::uint64_t tag, const PacketOf& packet_of,
                                    const ScalarOf& scalars) {
    const int me = x.view().rank, nranks = x.view().nranks;
    numerics::WordReducer<T, Op> reducer{};
    const auto from_all = [](int) { return true; };
    collect(x, tag, from_all, packet_of, [&](int rank, std::uint64_t word) {
      if (rank == me) word = own;
      if (rank == 0) {
        reducer.init(word, scalars(0));
      } else {
        reducer.add(word, scalars(rank));
      }
    });
    const std::uint64_t result = reducer.finish(nranks);
    if constexpr (numerics::kMayRetry<T, Op>) {
      if (nranks > 1 && !numerics::all_finite<T>(result)) {
        const auto word_of = [&](int rank) { return rank == me ? own : x.poll(packet_of(rank), tag, rank); };
        return numerics::reduce_word<T, Op>(nranks, word_of, scalars);
      }
    }
    return result;
  }
};

/// `flow`: Pattern, or FullExchange where that serves the operation. Words: AnyWords, or WholeWords where those do.
PK_HD_POLICY
template <class Combine, class Words, class Flow, class X>
PK_HD bool one_shot_ll(X& x, const Operation& op, const Flow& flow) {
  const View& view = x.view();
  const int me = view.rank, nranks = view.nranks;
  const auto bytes = static_cast<std::uint32_t>(op.block);
  const Share share = share_of(x, (bytes + 7) / 8);

  const Turn turn = next_turn(x, op);
  const std::uint64_t m = turn.m, tag = turn.word;
  Sender sender(
      std::bool_constant<Flow::kSameForAll>{}, x, share,
      [=](int peer, std::uint32_t) { return flow.moves(me, peer); },
      [=](int peer, std::uint32_t at) { return Words::load(flow.source(peer), at, bytes); },
      [&view, me](int peer, std::uint32_t at) { return view.packets(peer, 0, 0, me) + at; });
  if (!licence(x, m)) return false;
  sender.send(parity_offset(view, m), tag);
  for (int step = 1; step < nranks; ++step) {
    if (flow.moves(me, rank_at(view, step))) x.nudge(rank_at(view, step));
  }
  announce<false>(x, op, turn);  // orders nothing here, so behind what is waited for
  if constexpr (Combine::kScaled) {
    if (!exchange_scalars(x, op, turn)) return false;
  }

  const Scalars scalars{view, op, m};
  for (std::uint32_t at = share.begin; at < share.end; at += share.step) {
    const auto packet_of = [&view, m, me, at](int source) { return view.packets(me, m, 0, source) + at; };
    if constexpr (Combine::kReduces) {
      if (!flow.moves(rank_at(view, nranks - 1), me)) break;
      const std::uint64_t own = Words::load(flow.source(me), at, bytes);
      Words::store(op.recv, at, bytes, Combine::reduce(x, own, tag, packet_of, scalars));
    } else {
      collect(
          x, tag, [&](int source) { return flow.moves(source, me); }, packet_of,
          [&](int source, std::uint64_t word) {
            if (!flow.moves(source, me)) return;
            if (source == me) {
              if (flow.source(me) == flow.target(me)) return;
              word = Words::load(flow.source(me), at, bytes);
            }
            Words::store(flow.target(source), at, bytes, word);
          });
    }
  }
  return x.leave(turn.word, flow.all_hear_all());
}

PK_HD_POLICY
template <class Combine, class X>
PK_HD bool one_shot_ll(X& x, const Operation& op) {
  if (FullExchange::serves(op.collective)) return one_shot_ll<Combine, AnyWords>(x, op, FullExchange{op});
  return one_shot_ll<Combine, AnyWords>(x, op, Pattern{op});
}

/// A barrier is an announcement that is waited for, by release and acquire.
PK_HD_POLICY
template <class X>
PK_HD bool barrier_ll(X& x, const Operation& op) {
  const View& view = x.view();
  const Turn turn = enter<true>(x, op);
  const bool all = await_peers(x, [&](int peer) {
    const std::uint64_t* const word = view.progress(view.rank, peer);
    if (x.await(word, make_word(turn.m, 0), peer, "entry")) x.agrees(word, turn.word, peer);
  });
  return all && x.leave(turn.word, true);
}

}  // namespace pkcomm
