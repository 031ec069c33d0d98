// The one-way protocol's parts that every schedule shares: announce, licence, fingerprint, leave. See docs/protocol.md.
//
// A schedule is a template over an execution policy X, one for the host (platform/host/policy.hpp) and one for GPUs:
//   x.view() x.cta() x.ctas()        who am I
//   x.each(n, f)                     f(i) for i < n, spread over the block's threads
//   x.barrier()                      of the block
//   x.epoch() x.heard()              the word of the last operation; the last one that heard from every rank
//   x.enters(word)                   the operation that all later waits belong to
//   x.announce<ordered>(word, value, peer)   store into a peer's progress word; ordered: release
//   x.publish(word, value, peer)     release store of a word at `peer`; everything the block did before is visible with it
//   x.await(word, wanted, peer, phase)       acquire until *word >= wanted; false: give up
//   x.demand(word, wanted, peer)     acquire; gives up unless *word == wanted
//   x.agrees(word, wanted, peer)     the same, but a word of a later operation will do
//   x.put(packet, data, tag)  x.nudge(peer)  LL packet to a peer; after the last packet for it
//   x.poll(packet, tag, peer)        the payload of an LL packet; 0 and x.failed() when it gives up
//   x.copy(to, from, bytes)          by the whole block, register loads and stores
//   x.failed()                       a wait of this block gave up
//   x.leave(word, heard)             advance the epoch once all CTAs have come here; false, and no advance, if one failed
// Within each(), a call concerns the one thread; outside, the whole block. On a GPU failed() is a thread's own until the
// next barrier or await of the block; so a schedule leaves early only behind one, and after a failure nothing is sent.
// A policy whose host does not do it has besides:
//   x.record(call)                   keeps the call for messages, read only when something is wrong
// A policy whose threads run at once has besides:
//   x.thread() x.threads()           the calling thread among those of all CTAs
//   x.collect(...)                   as collect() below, waiting for all packets at once
// A schedule returns false when a wait gave up: it then publishes nothing more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/host_device.hpp"
#include "collectives/operation.hpp"
#include "numerics/bits.hpp"
#include "protocol/layout.hpp"

namespace pkcomm {

/// The rank `step` places further round; 0 <= step < nranks. All ranks begin with another peer, so that none is flooded.
PK_HD inline int rank_at(const View& view, int step) {
  const int rank = view.rank + step;
  return rank < view.nranks ? rank : rank - view.nranks;
}

/// f(peer) for every other rank, by a thread each where there are threads.
PK_HD_POLICY
template <class X, class F>
PK_HD void each_peer(X& x, const F& f) {
  x.each(static_cast<std::uint64_t>(x.view().nranks - 1),
         [&](std::uint64_t i) { f(rank_at(x.view(), 1 + static_cast<int>(i))); });
}
/// The same and a barrier: so the block waits for several peers at once. False when a wait gave up.
PK_HD_POLICY
template <class X, class F>
PK_HD bool await_peers(X& x, const F& f) {
  each_peer(x, f);
  x.barrier();
  return !x.failed();
}

/// The operation that a rank has entered.
struct Turn {
  std::uint64_t word;  // as next_word() makes it
  std::uint64_t m;     // its number
};

/// The operation behind the last one.
PK_HD_POLICY
template <class X>
PK_HD Turn next_turn(X& x, const Operation& op) {
  const std::uint64_t word = next_word(x.epoch(), op.fingerprint);
  x.enters(word);
  return {word, operation_of(word)};
}

/// Tells every peer that this rank has entered the operation; waits for nobody. `ordered` where peers touch user memory on
/// the strength of it: release half of [announce], acquired by await_entry.
PK_HD_POLICY
template <bool ordered, class X>
PK_HD void announce(X& x, const Operation& op, const Turn& turn) {
  const View& view = x.view();
  if (x.cta() == 0) {
    each_peer(
        x, [&](int peer) { x.template announce<ordered>(view.progress(peer, view.rank), turn.word, peer); });
    if constexpr (requires { x.record(CallRecord{}); }) x.record(record_of(op, turn.word));
  }
}

/// Enters the next operation.
PK_HD_POLICY
template <bool ordered, class X>
PK_HD Turn enter(X& x, const Operation& op) {
  const Turn turn = next_turn(x, op);
  announce<ordered>(x, op, turn);
  return turn;
}

/// The items that the calling thread has of those that all CTAs share: begin, begin + step, ... below end.
struct Share {
  std::uint32_t begin, end, step;
};

/// Shares n items, 8-byte packets mostly, out to all CTAs, the same way on every rank.
PK_HD_POLICY
template <class X>
PK_HD Share share_of(X& x, std::uint32_t n) {
  if constexpr (requires { x.threads(); }) {
    return {x.thread(), n, x.threads()};
  } else {
    const Part column = column_of(std::uint64_t{n} * 8, x.cta(), x.ctas());
    return {static_cast<std::uint32_t>(column.begin / 8),
            static_cast<std::uint32_t>((column.begin + column.bytes) / 8), 1};
  }
}

/// How many packets lie between a place in the staging of even operations and the same place in that of operation m.
PK_HD inline std::ptrdiff_t parity_offset(const View& view, std::uint64_t m) {
  const std::ptrdiff_t of_odd = view.packets(0, 1, 0, 0) - view.packets(0, 0, 0, 0);
  return m % 2 != 0 ? of_odd : 0;
}

/// Sends word_for(peer, item) into the packet place_for(peer, item), a place of even operations, for every item of a share
/// and every other rank that goes_to(peer, item). The words of several peers are read together, and the first ones when it
/// is made: while the epoch, on which they do not depend, is on its way. kSameForAll: an item's word is read once.
template <bool kSameForAll, class X, class GoesTo, class WordFor, class PlaceFor>
class Sender {
 public:
  PK_HD_POLICY
  PK_HD Sender(std::bool_constant<kSameForAll>, X& x, const Share& share, const GoesTo& goes_to,
               const WordFor& word_for, const PlaceFor& place_for)
      : x_(x),
        share_(share),
        goes_to_(goes_to),
        word_for_(word_for),
        place_for_(place_for),
        item_(share.begin) {
    if (item_ < share_.end) prepare();
  }
  PK_HD_POLICY
  PK_HD void send(std::ptrdiff_t offset, std::uint64_t tag) {
    while (item_ < share_.end) {
      PK_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        if (step_ + i >= x_.view().nranks) break;
        const std::uint64_t word = words_[kSameForAll ? 0 : i];
        if (goes_to_(rank_at(x_.view(), step_ + i), item_)) x_.put(places_[i] + offset, word, tag);
      }
      step_ += kTogether;
      if (step_ >= x_.view().nranks) {
        step_ = 1;
        item_ += share_.step;
      }
      if (item_ < share_.end) prepare();
    }
  }

 private:
  // Peers whose words are read together. What is not made for a number of ranks has a loop instead, which is shorter.
  static constexpr int batch() {
    if constexpr (requires { X::kRanks; }) {
      return X::kRanks < 2 ? 1 : X::kRanks <= 8 ? X::kRanks - 1 : 8;
    } else {
      return 1;
    }
  }
  static constexpr int kTogether = batch();

  PK_HD_POLICY
  PK_HD void prepare() {
    if constexpr (kSameForAll) words_[0] = word_for_(x_.view().rank, item_);
    PK_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (step_ + i >= x_.view().nranks) break;
      const int peer = rank_at(x_.view(), step_ + i);
      if (!goes_to_(peer, item_)) continue;
      if constexpr (!kSameForAll) words_[i] = word_for_(peer, item_);
      places_[i] = place_for_(peer, item_);
    }
  }

  X& x_;
  const Share share_;
  const GoesTo goes_to_;
  const WordFor word_for_;
  const PlaceFor place_for_;
  std::uint32_t item_;
  int step_ = 1;  // of the first peer that is prepared
  std::uint64_t words_[kSameForAll ? 1 : kTogether] = {};
  Packet* places_[kTogether] = {};
};

/// For the calling thread: sink(r, word) for r = 0, 1, ... nranks - 1, with the payload of the packet at packet_of(r) where
/// another rank comes_from(r), else with 0.
PK_HD_POLICY
template <class X, class ComesFrom, class PacketOf, class Sink>
PK_HD void collect(X& x, std::uint64_t tag, const ComesFrom& comes_from, const PacketOf& packet_of,
                   const Sink& sink) {
  const int me = x.view().rank, nranks = x.view().nranks;
  if constexpr (requires { x.collect(tag, comes_from, packet_of, sink); }) {
    x.collect(tag, comes_from, packet_of, sink);
  } else {
    for (int rank = 0; rank < nranks; ++rank) {
      sink(rank, rank != me && comes_from(rank) ? x.poll(packet_of(rank), tag, rank) : 0);
    }
  }
}

/// Staging of this parity may be written at every peer once it has announced m - 1: it then has consumed m - 2. Needless
/// where m - 1 heard from every rank. In LL operations it orders a write after a read that has returned, nothing else.
PK_HD_POLICY
template <class X>
PK_HD bool licence(X& x, std::uint64_t m) {
  const View& view = x.view();
  if (x.heard() + 1 == m) [[likely]]
    return true;
  return await_peers(
      x, [&](int peer) { x.await(view.progress(view.rank, peer), make_word(m - 1, 0), peer, "licence"); });
}

/// Until `peer` has entered this operation itself, with the same call: its user memory may be touched then. It cannot have
/// gone further, since it waits to be told that this rank has done with that memory. Acquire half of [announce].
PK_HD_POLICY
template <class X>
PK_HD bool await_entry(X& x, const Turn& turn, int peer) {
  const View& view = x.view();
  const std::uint64_t* word = view.progress(view.rank, peer);
  return x.await(word, make_word(turn.m, 0), peer, "entry") && x.demand(word, turn.word, peer);
}

/// Says what this rank puts into its raw slots at every peer that goes_to(peer). Carried by the first publish to the peer,
/// behind a barrier.
PK_HD_POLICY
template <class X, class GoesTo>
PK_HD void write_headers(X& x, const Turn& turn, const GoesTo& goes_to) {
  const View& view = x.view();
  each_peer(x, [&](int peer) {
    if (goes_to(peer)) x.store(view.header(peer, turn.m, x.cta(), view.rank), turn.word);
  });
}
/// After the first arrival from `peer`, which it came with. The arrival alone proves nothing: a peer that called something
/// else may have published those of a later operation.
PK_HD_POLICY
template <class X>
PK_HD bool check_header(X& x, const Turn& turn, int peer) {
  const View& view = x.view();
  return x.demand(view.header(view.rank, turn.m, x.cta(), peer), turn.word, peer);
}

/// Every rank's pre-multiplier, by packets of their own: they are part of no fingerprint and may differ.
PK_HD_POLICY
template <class X>
PK_HD bool exchange_scalars(X& x, const Operation& op, const Turn& turn) {
  if (op.kind != numerics::ReduceKind::kPreMulSum) return true;
  const View& view = x.view();
  if (x.cta() == 0) {
    const std::uint64_t scalar = own_scalar(op);
    each_peer(x, [&](int peer) {
      x.put(view.scalar(peer, turn.m, view.rank), scalar, turn.word);
      x.nudge(peer);
    });
  }
  return await_peers(x, [&](int peer) { x.poll(view.scalar(view.rank, turn.m, peer), turn.word, peer); });
}

/// The pre-multiplier of a rank, after exchange_scalars; anything for other operations. Refers to no View, so that one that
/// lives in a GPU's registers may stay there.
class Scalars {
 public:
  PK_HD Scalars(const View& view, const Operation& op, std::uint64_t m)
      : first_(reinterpret_cast<const std::byte*>(view.scalar(view.rank, m, 0))),
        own_(op.kind == numerics::ReduceKind::kPreMulSum ? own_scalar(op) : 0),
        rank_(view.rank) {}
  PK_HD std::uint64_t operator()(int rank) const {
    if (rank == rank_) return own_;
    return reinterpret_cast<const Packet*>(first_ + static_cast<std::size_t>(rank) * kLine)->data;
  }

 private:
  const std::byte* first_;  // rank 0's packet; the others follow, a line each
  std::uint64_t own_;
  int rank_;
};

}  // namespace pkcomm
