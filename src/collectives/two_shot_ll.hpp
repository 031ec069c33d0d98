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

/// The slices of a buffer, one an owner; the last ones may be short or empty.
struct Slices {
  std::uint32_t slice;  // bytes of a whole one
  std::uint32_t total;  // bytes of the buffer

  PK_HD std::uint32_t packets() const { return (slice + 7) / 8; }
  PK_HD std::uint32_t begin(int owner) const {
    const std::uint32_t at = slice * static_cast<std::uint32_t>(owner);
    return at < total ? at : total;
  }
  PK_HD std::uint32_t bytes(int owner) const {
    const std::uint32_t left = total - begin(owner);
    return left < slice ? left : slice;
  }
  PK_HD bool has(int owner, std::uint32_t packet) const { return packet * 8 < bytes(owner); }
};

}  // namespace detail

PK_HD_POLICY
template <class Combine, class Words = AnyWords, class X>
PK_HD bool two_shot_ll(X& x, const Operation& op) {
  const View& view = x.view();
  const int me = view.rank, nranks = view.nranks;
  const detail::Slices slices{static_cast<std::uint32_t>(slice_of(op.block, 0, nranks).bytes),
                              static_cast<std::uint32_t>(op.block)};
  const Share share = share_of(x, slices.packets());
  const auto input = [&op, slices](int owner, std::uint32_t at) {
    return Words::load(op.send + slices.begin(owner), at, slices.bytes(owner));
  };
  const bool feeds = Combine::kReduces || me == op.root;  // has input

  const Turn turn = next_turn(x, op);
  const std::uint64_t m = turn.m, tag = turn.word;
  Sender sender(
      std::false_type{}, x, share,
      [=](int owner, std::uint32_t at) { return feeds && slices.has(owner, at); }, input,
      [&view, me](int owner, std::uint32_t at) { return view.packets(owner, 0, 0, me) + at; });
  if (!licence(x, m)) return false;
  sender.send(parity_offset(view, m), tag);
  for (int step = 1; step < nranks; ++step) x.nudge(rank_at(view, step));
  announce<false>(x, op, turn);
  if constexpr (Combine::kScaled) {
    if (!exchange_scalars(x, op, turn)) return false;
  }

  const bool everybody = op.collective != Collective::kReduce;  // receives results
  const bool receives = everybody || me == op.root;
  const Scalars scalars{view, op, m};
  for (std::uint32_t at = share.begin; at < share.end && slices.has(me, at); at += share.step) {
    std::uint64_t word;
    if constexpr (Combine::kReduces) {
      const auto packet_of = [&view, m, me, at](int source) { return view.packets(me, m, 0, source) + at; };
      word = Combine::reduce(x, input(me, at), tag, packet_of, scalars);
    } else {
      word = me == op.root ? input(me, at) : x.poll(view.packets(me, m, 0, op.root) + at, tag, op.root);
    }
    if (x.failed()) break;
    for (int step = 1; step < nranks; ++step) {
      const int peer = rank_at(view, step);
      const bool wants = Combine::kReduces ? everybody || peer == op.root : peer != op.root;
      if (wants) x.put(view.packets(peer, m, 1, me) + at, word, tag);
    }
    if (receives) Words::store(op.recv + slices.begin(me), at, slices.bytes(me), word);
  }
  for (int step = 1; step < nranks; ++step) x.nudge(rank_at(view, step));

  const bool root_of_broadcast = !Combine::kReduces && me == op.root;
  if (root_of_broadcast) {
    if (op.send != op.recv) {
      const Part column = column_of(op.block, x.cta(), x.ctas());
      x.copy(op.recv + column.begin, op.send + column.begin, column.bytes);
    }
  } else if (receives) {
    for (std::uint32_t at = share.begin; at < share.end; at += share.step) {
      collect(
          x, tag, [&](int owner) { return slices.has(owner, at); },
          [&](int owner) { return view.packets(me, m, 1, owner) + at; },
          [&](int owner, std::uint64_t word) {
            if (owner != me && slices.has(owner, at)) {
              Words::store(op.recv + slices.begin(owner), at, slices.bytes(owner), word);
            }
          });
    }
  }
  // A rank whose slice is empty has heard from the owners alone.
  const bool no_slice_is_empty = slices.bytes(nranks - 1) > 0;
  return x.leave(turn.word, op.collective == Collective::kAllReduce && no_slice_is_empty);
}

}  // namespace pkcomm
