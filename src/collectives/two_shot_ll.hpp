// two_shot_ll: reduce or scatter slices to their owners by LL packets, and let the owners send the results on as packets
// as soon as each has come. Two hops and 2 (nranks-1)/nranks of the buffer per rank (x2 for the tags), where one_shot_ll
// has one hop and nranks-1 buffers.
//
//   all_reduce, reduce   half 0: slice p of every rank to its owner p; half 1: the reduced slice to all, or to the root
//   broadcast            half 0: slice p from the root to p; half 1: slice p on to everybody else
//
// Any pointers; in place too: a rank reads all of its input before the first result can reach it, and the thread that
// stores a result is the one that has read the input there. Columns and writers as in one_shot_ll.
#pragma once

#include "collectives/one_shot_ll.hpp"

namespace pkcomm {

namespace detail {

/// This CTA's packets in every owner's slice: the same column of each, cut where a slice is short.
struct SliceColumns {
  std::uint64_t slice;    // bytes of a whole slice
  Part column;            // within it
  std::uint64_t total;    // bytes of the buffer

  PK_HD std::uint64_t first() const { return column.begin / 8; }
  PK_HD std::uint64_t packets() const { return (column.bytes + 7) / 8; }
  PK_HD std::uint64_t begin(int owner) const {
    const std::uint64_t at = slice * static_cast<std::uint64_t>(owner);
    return at < total ? at : total;
  }
  /// Of the slice, from its begin on.
  PK_HD std::uint64_t bytes(int owner) const {
    const std::uint64_t left = total - begin(owner);
    return left < slice ? left : slice;
  }
  PK_HD bool has(int owner, std::uint64_t at) const { return at * 8 < bytes(owner); }
};

}  // namespace detail

PK_HD_POLICY
template <class Combine, class X>
PK_HD bool two_shot_ll(X& x, const Operation& op) {
  const View& view = x.view();
  const int me = view.rank, nranks = view.nranks;
  const std::uint64_t slice = slice_of(op.block, 0, nranks).bytes;
  const detail::SliceColumns columns{slice, column_of(slice, x.cta(), x.ctas()), op.block};
  const std::uint64_t first = columns.first();
  const std::uint64_t m = enter<false>(x, op);
  const std::uint64_t tag = make_word(m, op.fingerprint);
  if (!licence(x, m)) return false;
  if constexpr (Combine::kScaled) {
    if (!exchange_scalars(x, op, m)) return false;
  }

  const auto input = [&](int owner, std::uint64_t at) {
    return load_word(op.send + columns.begin(owner), at, columns.bytes(owner));
  };
  const bool feeds = Combine::kReduces || me == op.root;  // has input
  if (feeds) {
    x.each(columns.packets(), [&](std::uint64_t i) {
      const std::uint64_t at = first + i;
      distribute(
          x, tag, [&](int owner) { return input(owner, at); },
          [&](int owner) { return columns.has(owner, at) ? view.packets(owner, m, 0, me) + at : nullptr; });
    });
    for (int step = 1; step < nranks; ++step) x.nudge(rank_at(view, step));
  }

  const bool everybody = op.collective != Collective::kReduce;  // receives results
  const bool receives = everybody || me == op.root;
  x.each(columns.packets(), [&](std::uint64_t i) {
    const std::uint64_t at = first + i;
    if (!columns.has(me, at)) return;
    std::uint64_t word;
    if constexpr (Combine::kReduces) {
      const auto packet_of = [&](int source) -> const Packet* {
        return source == me ? nullptr : view.packets(me, m, 0, source) + at;
      };
      word = Combine::reduce(x, input(me, at), tag, packet_of, Scalars{view, op, m});
    } else {
      word = me == op.root ? input(me, at) : x.poll(view.packets(me, m, 0, op.root) + at, tag, op.root);
    }
    if (x.failed()) return;
    distribute(
        x, tag, [&](int) { return word; },
        [&](int peer) {
          const bool wants = Combine::kReduces ? everybody || peer == op.root : peer != op.root;
          return wants ? view.packets(peer, m, 1, me) + at : nullptr;
        });
    if (receives) store_word(op.recv + columns.begin(me), at, columns.bytes(me), word);
  });
  for (int step = 1; step < nranks; ++step) x.nudge(rank_at(view, step));

  const bool root_of_broadcast = !Combine::kReduces && me == op.root;
  if (root_of_broadcast) {
    if (op.send != op.recv) {
      const Part column = column_of(op.block, x.cta(), x.ctas());
      x.copy(op.recv + column.begin, op.send + column.begin, column.bytes);
    }
  } else if (receives) {
    x.each(columns.packets(), [&](std::uint64_t i) {
      const std::uint64_t at = first + i;
      collect(
          x, nranks, tag,
          [&](int owner) -> const Packet* {
            return owner != me && columns.has(owner, at) ? view.packets(me, m, 1, owner) + at : nullptr;
          },
          [&](int owner, std::uint64_t word) {
            if (owner != me && columns.has(owner, at)) {
              store_word(op.recv + columns.begin(owner), at, columns.bytes(owner), word);
            }
          });
    });
  }
  // A rank whose slice is empty has heard from the owners alone.
  const bool no_slice_is_empty = columns.bytes(nranks - 1) > 0;
  return x.leave(m, op.collective == Collective::kAllReduce && no_slice_is_empty);
}

}  // namespace pkcomm
