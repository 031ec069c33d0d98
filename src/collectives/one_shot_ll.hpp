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
    collect(x, nranks, tag, packet_of, [&](int rank, std::uint64_t word) {
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

PK_HD_POLICY
template <class Combine, class X>
PK_HD bool one_shot_ll(X& x, const Operation& op) {
  const View& view = x.view();
  const Pattern pattern{op};
  const int me = view.rank, nranks = view.nranks;
  const Part column = column_of(op.block, x.cta(), x.ctas());
  const std::uint64_t first = column.begin / 8;
  const std::uint64_t packets = (column.bytes + 7) / 8;
  const bool sends = Combine::kReduces || pattern.moves(me, rank_at(view, nranks - 1)) || pattern.moves(me, rank_at(view, 1 % nranks));
  const bool same_for_all = pattern.send_at(1) == pattern.send_at(0);

  // Where all get the same, a thread's first word is on its way while the epoch is: nothing of it depends on m.
  const std::uint64_t m = x.epoch() + 1;
  const std::uint64_t early = first_index(x);
  std::uint64_t early_word = 0;
  if (sends && same_for_all && early < packets) early_word = load_word(op.send, first + early, op.block);
  announce<false>(x, op, m);
  if (!licence(x, m)) return false;
  if constexpr (Combine::kScaled) {
    if (!exchange_scalars(x, op, m)) return false;
  }

  const std::uint64_t tag = make_word(m, op.fingerprint);
  if (sends) {
    x.each(packets, [&](std::uint64_t i) {
      const std::uint64_t at = first + i;
      const std::uint64_t same = !same_for_all ? 0 : i == early ? early_word : load_word(op.send, at, op.block);
      distribute(
          x, tag, [&](int peer) { return same_for_all ? same : load_word(pattern.source(peer), at, op.block); },
          [&](int peer) { return pattern.moves(me, peer) ? view.packets(peer, m, 0, me) + at : nullptr; });
    });
    for (int peer = 0; peer < nranks; ++peer) {
      if (peer != me && pattern.moves(me, peer)) x.nudge(peer);
    }
  }

  if constexpr (Combine::kReduces) {
    if (pattern.moves(rank_at(view, nranks - 1), me)) {
      x.each(packets, [&](std::uint64_t i) {
        const std::uint64_t at = first + i;
        const auto packet_of = [&](int source) -> const Packet* {
          return source == me ? nullptr : view.packets(me, m, 0, source) + at;
        };
        store_word(op.recv, at, op.block,
                   Combine::reduce(x, load_word(pattern.source(me), at, op.block), tag, packet_of, Scalars{view, op, m}));
      });
    }
  } else {
    const bool copies_own = pattern.moves(me, me) && pattern.source(me) != pattern.target(me);
    x.each(packets, [&](std::uint64_t i) {
      const std::uint64_t at = first + i;
      collect(
          x, nranks, tag,
          [&](int source) -> const Packet* {
            return source == me || !pattern.moves(source, me) ? nullptr : view.packets(me, m, 0, source) + at;
          },
          [&](int source, std::uint64_t word) {
            if (source == me) {
              if (copies_own) store_word(pattern.target(me), at, op.block, load_word(pattern.source(me), at, op.block));
            } else if (pattern.moves(source, me)) {
              store_word(pattern.target(source), at, op.block, word);
            }
          });
    });
  }
  const bool heard = op.collective == Collective::kAllReduce || op.collective == Collective::kAllGather ||
                     op.collective == Collective::kReduceScatter || op.collective == Collective::kAllToAll;
  return x.leave(m, heard);
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
