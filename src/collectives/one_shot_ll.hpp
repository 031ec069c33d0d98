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

  /// Within each(): this rank's `own` word and the packets of the others, reduced in rank order.
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
      if (nranks > 1 && !numerics::detail::all_finite<T>(result)) {
        const auto word_of = [&](int rank) { return rank == me ? own : x.poll(packet_of(rank), tag, rank); };
        return numerics::reduce_word<T, Op>(nranks, word_of, scalars);
      }
    }
    return result;
  }
};

namespace detail {

PK_HD_POLICY
template <class Combine, class Flow, class X>
PK_HD bool one_shot_ll(X& x, const Operation& op, const Flow& flow) {
  const View& view = x.view();
  const int me = view.rank, nranks = view.nranks;
  const auto bytes = static_cast<std::uint32_t>(op.block);
  const std::uint32_t packets = (bytes + 7) / 8;
  const bool same_for_all = flow.send_at(1) == flow.send_at(0);
  const bool sends = flow.sends(me);

  // Where all get the same, a thread's first word is on its way while the epoch is: nothing of it depends on m.
  const std::uint64_t m = x.epoch() + 1;
  const std::uint32_t early = share_begin(x, packets);
  std::uint64_t early_word = 0;
  if (sends && same_for_all && early < packets) early_word = load_word(op.send, early, bytes);
  if (!licence(x, m)) return false;

  const std::uint64_t tag = make_word(m, op.fingerprint);
  if (sends) {
    share(x, packets, [&](std::uint32_t at) {
      const std::uint64_t same = !same_for_all ? 0 : at == early ? early_word : load_word(op.send, at, bytes);
      distribute(
          x, tag, [&](int peer) { return flow.moves(me, peer); },
          [&](int peer) { return same_for_all ? same : load_word(flow.source(peer), at, bytes); },
          [&](int peer) { return view.packets(peer, m, 0, me) + at; });
    });
    for (int peer = 0; peer < nranks; ++peer) {
      if (peer != me && flow.moves(me, peer)) x.nudge(peer);
    }
  }
  announce<false>(x, op, m);  // orders nothing here, so behind what is waited for
  if constexpr (Combine::kScaled) {
    if (!exchange_scalars(x, op, m)) return false;
  }

  const auto packet_of = [&](std::uint32_t at) {
    return [&view, m, me, at](int source) { return view.packets(me, m, 0, source) + at; };
  };
  if constexpr (Combine::kReduces) {
    if (flow.receives(me)) {
      share(x, packets, [&](std::uint32_t at) {
        const std::uint64_t own = load_word(flow.source(me), at, bytes);
        store_word(op.recv, at, bytes, Combine::reduce(x, own, tag, packet_of(at), Scalars{view, op, m}));
      });
    }
  } else {
    const bool copies_own = flow.moves(me, me) && flow.source(me) != flow.target(me);
    share(x, packets, [&](std::uint32_t at) {
      collect(
          x, tag, [&](int source) { return flow.moves(source, me); }, packet_of(at),
          [&](int source, std::uint64_t word) {
            if (source == me) {
              if (copies_own) store_word(flow.target(me), at, bytes, load_word(flow.source(me), at, bytes));
            } else if (flow.moves(source, me)) {
              store_word(flow.target(source), at, bytes, word);
            }
          });
    });
  }
  const bool heard = FullExchange::serves(op.collective) || op.collective == Collective::kReduceScatter ||
                     op.collective == Collective::kAllToAll;
  return x.leave(m, heard);
}

}  // namespace detail

PK_HD_POLICY
template <class Combine, class X>
PK_HD bool one_shot_ll(X& x, const Operation& op) {
  if (FullExchange::serves(op.collective)) return detail::one_shot_ll<Combine>(x, op, FullExchange{op});
  return detail::one_shot_ll<Combine>(x, op, Pattern{op});
}

/// A barrier is an announcement that is waited for, by release and acquire.
PK_HD_POLICY
template <class X>
PK_HD bool barrier_ll(X& x, const Operation& op) {
  const View& view = x.view();
  const std::uint64_t m = enter<true>(x, op);
  x.each(static_cast<std::uint64_t>(view.nranks - 1), [&](std::uint64_t i) {
    await_entry(x, op, m, rank_at(view, 1 + static_cast<int>(i)));
  });
  x.barrier();
  return !x.failed() && x.leave(m, true);
}

}  // namespace pkcomm
