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
    const std::uint64_t most = share / 2 / 8 * 8;
    const std::uint64_t chunk = wanted_chunk < most ? wanted_chunk : most;
    return {chunk, share / chunk < kMostSubslots ? share / chunk : kMostSubslots, share};
  }
  PK_HD std::uint64_t count(std::uint64_t bytes) const { return (bytes + chunk - 1) / chunk; }
  PK_HD std::uint64_t offset(int cta, std::uint64_t round) const {
    return std::uint64_t(cta) * share + round % subslots * chunk;
  }
};

/// The most bytes of a block that one operation can take in its rounds; longer calls are several operations.
PK_HD inline std::uint64_t longest_block(std::uint64_t slot_bytes, std::uint64_t chunk, int ctas) {
  return Rounds::of(slot_bytes, chunk, ctas).chunk * kMaxRounds * std::uint64_t(ctas) / 64 * 64;
}

namespace detail {

PK_HD inline std::uint64_t slot_bytes(const View& view, Area area) {
  return area == Area::kRegister ? view.layout.slot_bytes : view.layout.engine_bytes;
}

/// Waits until sub-slot of round `round` at `peer` is free again.
PK_HD_POLICY
template <class X>
PK_HD bool await_credit(X& x, const Rounds& rounds, std::uint64_t m, int phase, std::uint64_t round,
                        int peer) {
  if (round < rounds.subslots) return true;
  return x.await(x.view().credit(x.view().rank, phase, x.cta(), peer),
                 make_word(m, round - rounds.subslots + 1), peer, "credit");
}
PK_HD_POLICY
template <class X>
PK_HD bool await_arrival(X& x, const Turn& turn, int phase, std::uint64_t round, int peer) {
  return x.await(x.view().arrive(x.view().rank, phase, x.cta(), peer), make_word(turn.m, round + 1), peer,
                 "arrival") &&
         (round > 0 || check_header(x, turn, peer));
}
PK_HD_POLICY
template <class X>
PK_HD void give_credit(X& x, const Rounds& rounds, std::uint64_t m, int phase, std::uint64_t round,
                       std::uint64_t last, int peer) {
  if (round + rounds.subslots < last) {
    x.publish(x.view().credit(peer, phase, x.cta(), x.view().rank), make_word(m, round + 1), peer);
  }
}

}  // namespace detail

/// `Reducer` is Movement, or has reduce(x, bytes, nranks, sources, to, scalars).
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

  const Rounds rounds = Rounds::of(detail::slot_bytes(view, Mover::kArea), op.chunk, x.ctas());
  const Part column = column_of(op.block, x.cta(), x.ctas());
  const std::uint64_t last = rounds.count(column.bytes);
  const Scalars scalars{view, op, m};
  const bool receives = pattern.receives(me);
  for (std::uint64_t round = 0; round < last; ++round) {
    const Part part = clip(column.begin + round * rounds.chunk, rounds.chunk, column.begin + column.bytes);
    const std::uint64_t offset = rounds.offset(x.cta(), round);
    for (int step = 1; step < nranks; ++step) {
      const int peer = (me + step) % nranks;
      if (!pattern.moves(me, peer)) continue;
      if (!detail::await_credit(x, rounds, m, 0, round, peer)) return false;
      if (round == 0) write_header(x, turn, peer);
      Mover::copy(x, view.slot(Mover::kArea, peer, m, 0, me) + offset, pattern.source(peer) + part.begin,
                  part.bytes);
    }
    Mover::drain(x);
    for (int step = 1; step < nranks; ++step) {
      const int peer = (me + step) % nranks;
      if (pattern.moves(me, peer))
        x.publish(view.arrive(peer, 0, x.cta(), me), make_word(m, round + 1), peer);
    }
    const auto slot_of = [&](int source) { return view.slot(Mover::kArea, me, m, 0, source) + offset; };
    if constexpr (Reducer::kReduces) {
      if (!receives) continue;
      for (int source = 0; source < nranks; ++source) {
        if (source != me && !detail::await_arrival(x, turn, 0, round, source)) return false;
      }
      reducer.reduce(
          x, part.bytes, nranks,
          [&](int source) -> const std::byte* {
            return source == me ? pattern.source(me) + part.begin : slot_of(source);
          },
          op.recv + part.begin, scalars);
      for (int source = 0; source < nranks; ++source) {
        if (source != me) detail::give_credit(x, rounds, m, 0, round, last, source);
      }
    } else {
      if (pattern.moves(me, me) && pattern.source(me) != pattern.target(me)) {
        x.copy(pattern.target(me) + part.begin, pattern.source(me) + part.begin, part.bytes);
      }
      for (int step = 1; step < nranks; ++step) {
        const int source = (me + step) % nranks;
        if (!pattern.moves(source, me)) continue;
        if (!detail::await_arrival(x, turn, 0, round, source)) return false;
        x.copy(pattern.target(source) + part.begin, slot_of(source), part.bytes);
        detail::give_credit(x, rounds, m, 0, round, last, source);
      }
    }
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
  const Rounds rounds = Rounds::of(detail::slot_bytes(view, Mover::kArea), op.chunk, x.ctas());
  const std::uint64_t slice_bytes = slice_of(op.block, 0, nranks).bytes;  // the longest
  const Part column = column_of(slice_bytes, x.cta(), x.ctas());
  const std::uint64_t last = rounds.count(column.bytes);
  const Scalars scalars{view, op, m};
  for (std::uint64_t round = 0; round < last; ++round) {
    const std::uint64_t offset = rounds.offset(x.cta(), round);
    // The round's part of `owner`'s slice; within the buffer.
    const auto part_of = [&](int owner) {
      const Part slice = slice_of(op.block, owner, nranks);
      const Part part =
          clip(column.begin + round * rounds.chunk,
               column.begin + column.bytes - (column.begin + round * rounds.chunk) < rounds.chunk
                   ? column.begin + column.bytes - (column.begin + round * rounds.chunk)
                   : rounds.chunk,
               slice.bytes);
      return Part{slice.begin + part.begin, part.bytes};
    };
    const auto slot = [&](int owner, int phase, int source) {
      return view.slot(Mover::kArea, owner, m, phase, source) + offset;
    };
    for (int step = 1; step < nranks; ++step) {
      const int owner = (me + step) % nranks;
      if (!detail::await_credit(x, rounds, m, 0, round, owner)) return false;
      if (round == 0) write_header(x, turn, owner);
      const Part part = part_of(owner);
      Mover::copy(x, slot(owner, 0, me), op.send + part.begin, part.bytes);
    }
    Mover::drain(x);
    for (int step = 1; step < nranks; ++step) {
      const int owner = (me + step) % nranks;
      x.publish(view.arrive(owner, 0, x.cta(), me), make_word(m, round + 1), owner);
    }

    const Part own = part_of(me);
    for (int source = 0; source < nranks; ++source) {
      if (source != me && !detail::await_arrival(x, turn, 0, round, source)) return false;
    }
    if (!has_output && !detail::await_credit(x, rounds, m, 1, round, op.root)) return false;
    std::byte* const result = has_output ? op.recv + own.begin : slot(op.root, 1, me);
    reducer.reduce(
        x, own.bytes, nranks,
        [&](int source) -> const std::byte* {
          return source == me ? op.send + own.begin : slot(me, 0, source);
        },
        result, scalars);
    for (int source = 0; source < nranks; ++source) {
      if (source != me) detail::give_credit(x, rounds, m, 0, round, last, source);
    }
    if (everybody) {
      for (int step = 1; step < nranks; ++step) {
        const int peer = (me + step) % nranks;
        if (!detail::await_credit(x, rounds, m, 1, round, peer)) return false;
        Mover::copy(x, slot(peer, 1, me), result, own.bytes);
      }
      Mover::drain(x);
    }
    for (int step = 1; step < nranks; ++step) {
      const int peer = (me + step) % nranks;
      if (everybody || (peer == op.root)) {
        x.publish(view.arrive(peer, 1, x.cta(), me), make_word(m, round + 1), peer);
      }
    }

    for (int step = 1; has_output && step < nranks; ++step) {
      const int owner = (me + step) % nranks;
      if (!detail::await_arrival(x, turn, 1, round, owner)) return false;
      const Part part = part_of(owner);
      x.copy(op.recv + part.begin, slot(me, 1, owner), part.bytes);
      detail::give_credit(x, rounds, m, 1, round, last, owner);
    }
  }
  return x.leave(turn.word, true);
}

}  // namespace pkcomm
