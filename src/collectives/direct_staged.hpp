// direct through staging: blocks go into raw slots at the receiver, in rounds, with one flag a round; the read of the
// user's buffer is the copy-in. Any pointers. How bytes reach the slots is the mover's matter (register stores, bulk
// copies, copy engine); the schedule and the flags are the same.
//
// A CTA has its own column of every block and of every slot, divided into sub-slots of one chunk. Round r uses sub-slot
// r mod n; its writer waits for the credit of round r - n, its reader for the arrival of round r.
//   [arrive]  release: publish of {m, r + 1} by the writer after its copies;  acquire: the reader's await
//   [credit]  release: publish of {m, r + 1} by the reader after its reads;   acquire: the writer's await
//
// exchange      one phase: each block to whom it concerns; there it is copied out, or reduced with the others
// reduce_twice  all_reduce, reduce: phase 0 sends slices to their owners, phase 1 the reduced slices to all or the root.
//               2 (nranks-1)/nranks of the buffer per rank.
#pragma once

#include "collectives/one_way.hpp"

namespace pkcomm {

// A ring of a few sub-slots stays in the caches between the two ranks; measured on the host (perf/openmpi/compare.py):
// 8 are 5 % faster than 16 and 10 % faster than all that a slot holds, 4 cost broadcast 40 % at 1 MiB.
inline constexpr std::uint64_t kMostSubslots = 8;

/// How a CTA's column goes through its share of the slots; the same on all ranks.
struct Rounds {
  std::uint64_t chunk;     // bytes of a round
  std::uint64_t subslots;  // at least 2
  std::uint64_t share;     // bytes of a slot that a column has

  PK_HD static Rounds of(std::uint64_t slot_bytes, std::uint64_t wanted_chunk, int ctas) {
    const std::uint64_t share = slot_bytes / std::uint64_t(ctas) / 16 * 16;
    const std::uint64_t most = share < 32 ? 8 : share / 2 / 16 * 16;
    const std::uint64_t chunk = wanted_chunk < most ? wanted_chunk : most;
    return {chunk, share / chunk < kMostSubslots ? share / chunk : kMostSubslots, share};
  }
  PK_HD std::uint64_t count(std::uint64_t bytes) const { return (bytes + chunk - 1) / chunk; }
  PK_HD std::uint64_t offset(int cta, std::uint64_t round) const {
    return std::uint64_t(cta) * share + round % subslots * chunk;
  }
};

PK_HD inline std::uint64_t slot_bytes(const View& view, Area area) {
  return area == Area::kRegister ? view.layout.slot_bytes : view.layout.engine_bytes;
}

/// The most bytes of a block that one operation can take in its rounds; longer calls are several operations.
PK_HD inline std::uint64_t longest_block(std::uint64_t slot_bytes, std::uint64_t chunk, int ctas) {
  return Rounds::of(slot_bytes, chunk, ctas).chunk * kMaxRounds * std::uint64_t(ctas) / 64 * 64;
}

namespace detail {

// Of one phase of one round, each with every peer for which `concerns(peer)`. Waits are for all of them at once.

/// Waits until the round's sub-slot is free again.
PK_HD_POLICY
template <class X, class Concerns>
PK_HD bool await_credits(X& x, const Rounds& rounds, std::uint64_t m, int phase, std::uint64_t round,
                         const Concerns& concerns) {
  if (round < rounds.subslots) return true;
  const View& view = x.view();
  return await_peers(x, [&](int peer) {
    if (concerns(peer)) {
      x.await(view.credit(view.rank, phase, x.cta(), peer), make_word(m, round - rounds.subslots + 1), peer,
              "credit");
    }
  });
}
PK_HD_POLICY
template <class X, class Concerns>
PK_HD bool await_arrivals(X& x, const Turn& turn, int phase, std::uint64_t round, const Concerns& concerns) {
  const View& view = x.view();
  return await_peers(x, [&](int peer) {
    if (concerns(peer) && x.await(view.arrive(view.rank, phase, x.cta(), peer), make_word(turn.m, round + 1),
                                  peer, "arrival")) {
      if (round == 0) check_header(x, turn, peer);
    }
  });
}
/// Behind a drain.
PK_HD_POLICY
template <class X, class Concerns>
PK_HD void tell_arrivals(X& x, const Turn& turn, int phase, std::uint64_t round, const Concerns& concerns) {
  const View& view = x.view();
  each_peer(x, [&](int peer) {
    if (concerns(peer))
      x.publish(view.arrive(peer, phase, x.cta(), view.rank), make_word(turn.m, round + 1), peer);
  });
}
PK_HD_POLICY
template <class X, class Concerns>
PK_HD void give_credits(X& x, const Rounds& rounds, std::uint64_t m, int phase, std::uint64_t round,
                        std::uint64_t last, const Concerns& concerns) {
  if (round + rounds.subslots >= last) return;
  const View& view = x.view();
  x.barrier();
  each_peer(x, [&](int peer) {
    if (concerns(peer))
      x.publish(view.credit(peer, phase, x.cta(), view.rank), make_word(m, round + 1), peer);
  });
}

/// Reduces into `to`, and puts the result where place_of(r) is at every other rank r.
PK_HD_POLICY
template <class Mover, class X, class Reducer, class Sources, class PlaceOf>
PK_HD void reduce_to_all(X& x, const Reducer& reducer, std::uint64_t bytes, const Sources& sources,
                         std::byte* to, const PlaceOf& place_of, const Scalars& scalars) {
  const int nranks = x.view().nranks;
  if constexpr (requires { reducer.reduce_to_all(x, bytes, nranks, sources, to, place_of, scalars); }) {
    reducer.reduce_to_all(x, bytes, nranks, sources, to, place_of, scalars);
  } else {
    reducer.reduce(x, bytes, nranks, sources, to, scalars);
    x.barrier();  // copies are dealt to threads otherwise than reductions
    for (int step = 1; step < nranks; ++step) {
      const int peer = rank_at(x.view(), step);
      Mover::copy(x, place_of(peer), to, bytes);
    }
  }
}

}  // namespace detail

/// `Reducer` is Movement, or has reduce(x, bytes, nranks, sources, to, scalars), and perhaps reduce_to_all() as above where it
/// needs no mover. Both sources(r) and place_of(r) lie r times the same distance behind those of rank 0, but for this rank's
/// own source.
PK_HD_POLICY
template <class Mover, class X, class Reducer>
PK_HD bool exchange_staged(X& x, const Operation& op, const Reducer& reducer) {
  const View& view = x.view();
  const Pattern pattern{op};
  const int me = view.rank, nranks = view.nranks;
  const Turn turn = enter<true>(x, op);
  const std::uint64_t m = turn.m;
  if (!licence(x, m)) return false;
  if (Reducer::kReduces && !exchange_scalars(x, op, turn)) return false;

  const Rounds rounds = Rounds::of(slot_bytes(view, Mover::kArea), op.chunk, x.ctas());
  const Part column = column_of(op.block, x.cta(), x.ctas());
  const std::uint64_t last = rounds.count(column.bytes);
  const auto goes_to = [&](int peer) { return pattern.moves(me, peer); };
  const auto comes_from = [&](int peer) { return pattern.moves(peer, me); };
  const Scalars scalars(view, op, m);
  if (last > 0) write_headers(x, turn, goes_to);
  for (std::uint64_t round = 0; round < last; ++round) {
    const Part part = clip(column.begin + round * rounds.chunk, rounds.chunk, column.begin + column.bytes);
    const std::uint64_t offset = rounds.offset(x.cta(), round);
    if (!detail::await_credits(x, rounds, m, 0, round, goes_to)) return false;
    for (int step = 1; step < nranks; ++step) {
      const int peer = rank_at(view, step);
      if (!goes_to(peer)) continue;
      Mover::copy(x, view.slot(Mover::kArea, peer, m, 0, me) + offset, pattern.source(peer) + part.begin,
                  part.bytes);
    }
    Mover::drain(x);
    detail::tell_arrivals(x, turn, 0, round, goes_to);
    if constexpr (!Reducer::kReduces) {
      if (pattern.moves(me, me) && pattern.source(me) != pattern.target(me)) {
        x.copy(pattern.target(me) + part.begin, pattern.source(me) + part.begin, part.bytes);
      }
    }
    if (!pattern.receives(me)) continue;
    if (!detail::await_arrivals(x, turn, 0, round, comes_from)) return false;
    const auto slot_of = [&](int source) { return view.slot(Mover::kArea, me, m, 0, source) + offset; };
    if constexpr (Reducer::kReduces) {
      reducer.reduce(
          x, part.bytes, nranks,
          [&](int source) -> const std::byte* {
            return source == me ? pattern.source(me) + part.begin : slot_of(source);
          },
          op.recv + part.begin, scalars);
    } else {
      for (int step = 1; step < nranks; ++step) {
        const int source = rank_at(view, step);
        if (comes_from(source)) x.copy(pattern.target(source) + part.begin, slot_of(source), part.bytes);
      }
    }
    detail::give_credits(x, rounds, m, 0, round, last, comes_from);
  }
  const bool heard = op.collective == Collective::kAllGather || op.collective == Collective::kReduceScatter ||
                     op.collective == Collective::kAllToAll;
  return x.leave(turn.word, heard);
}

PK_HD_POLICY
template <class Mover, class X, class Reducer>
PK_HD bool reduce_twice_staged(X& x, const Operation& op, const Reducer& reducer) {
  const View& view = x.view();
  const int me = view.rank, nranks = view.nranks;
  const Turn turn = enter<true>(x, op);
  const std::uint64_t m = turn.m;
  if (!licence(x, m) || !exchange_scalars(x, op, turn)) return false;

  const bool everybody = op.collective == Collective::kAllReduce;
  const bool has_output = everybody || me == op.root;
  const Rounds rounds = Rounds::of(slot_bytes(view, Mover::kArea), op.chunk, x.ctas());
  const std::uint64_t slice_bytes = slice_of(op.block, 0, nranks).bytes;  // the longest
  const Part column = column_of(slice_bytes, x.cta(), x.ctas());
  const std::uint64_t last = rounds.count(column.bytes);
  const auto all = [](int) { return true; };
  const auto wants_result = [&](int peer) { return everybody || peer == op.root; };
  const Scalars scalars(view, op, m);
  if (last > 0) write_headers(x, turn, all);
  for (std::uint64_t round = 0; round < last; ++round) {
    const std::uint64_t offset = rounds.offset(x.cta(), round);
    const Part of_slice =
        clip(column.begin + round * rounds.chunk, rounds.chunk, column.begin + column.bytes);
    // The round's part of `owner`'s slice; within the buffer.
    const auto part_of = [&](int owner) {
      const Part slice = slice_of(op.block, owner, nranks);
      const Part part = clip(of_slice.begin, of_slice.bytes, slice.bytes);
      return Part{slice.begin + part.begin, part.bytes};
    };
    const auto slot = [&](int owner, int phase, int source) {
      return view.slot(Mover::kArea, owner, m, phase, source) + offset;
    };
    if (!detail::await_credits(x, rounds, m, 0, round, all)) return false;
    for (int step = 1; step < nranks; ++step) {
      const int owner = rank_at(view, step);
      const Part part = part_of(owner);
      Mover::copy(x, slot(owner, 0, me), op.send + part.begin, part.bytes);
    }
    Mover::drain(x);
    detail::tell_arrivals(x, turn, 0, round, all);

    const Part own = part_of(me);
    if (!detail::await_arrivals(x, turn, 0, round, all)) return false;
    if (!detail::await_credits(x, rounds, m, 1, round, wants_result)) return false;
    const auto source_of = [&](int source) -> const std::byte* {
      return source == me ? op.send + own.begin : slot(me, 0, source);
    };
    if (everybody) {
      detail::reduce_to_all<Mover>(
          x, reducer, own.bytes, source_of, op.recv + own.begin, [&](int peer) { return slot(peer, 1, me); },
          scalars);
    } else {
      reducer.reduce(x, own.bytes, nranks, source_of, has_output ? op.recv + own.begin : slot(op.root, 1, me),
                     scalars);
    }
    Mover::drain(x);
    detail::tell_arrivals(x, turn, 1, round, wants_result);
    detail::give_credits(x, rounds, m, 0, round, last, all);

    if (!has_output) continue;
    if (!detail::await_arrivals(x, turn, 1, round, all)) return false;
    for (int step = 1; step < nranks; ++step) {
      const int owner = rank_at(view, step);
      const Part part = part_of(owner);
      x.copy(op.recv + part.begin, slot(me, 1, owner), part.bytes);
    }
    detail::give_credits(x, rounds, m, 1, round, last, all);
  }
  return x.leave(turn.word, true);
}

}  // namespace pkcomm
