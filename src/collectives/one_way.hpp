// The one-way protocol's parts that every schedule shares: announce, licence, fingerprint, leave. See docs/protocol.md.
//
// A schedule is a template over an execution policy X, one for the host (platform/host/policy.hpp) and one for GPUs:
//   x.view() x.cta() x.ctas()        who am I
//   x.each(n, f)                     f(i) for i < n, spread over the block's threads
//   x.barrier()                      of the block
//   x.epoch() x.heard()              the device words
//   x.announce<ordered>(word, value, peer)   store into a peer's progress word; ordered: release
//   x.publish(word, value, peer)     release store of a word at `peer`; everything the block did before is visible with it
//   x.await(word, wanted, peer, phase)       acquire until *word >= wanted; false: give up
//   x.put(packet, data, tag)  x.nudge(peer)  LL packet to a peer; after the last packet for it
//   x.poll(packet, tag, peer)        the payload of an LL packet; 0 and x.failed() when it gives up
//   x.copy(to, from, bytes)          by the whole block, register loads and stores
//   x.failed()                       a wait of this block gave up
//   x.leave(m, heard)                advance the epoch once all CTAs have come here; false, and no advance, if one failed
// Within each(), a call concerns the one thread; outside, the whole block. On a GPU failed() is a thread's own until the
// next barrier or await of the block; so a schedule leaves early only behind one, and after a failure nothing is sent.
// A policy whose threads run at once has besides:
//   x.share(n, f)  x.share_begin()   as share() below, dealing items out to the threads of all CTAs in turn
//   x.collect(...)                   as collect() below, waiting for all packets at once
// A schedule returns false when a wait gave up: it then publishes nothing more.
#pragma once

#include <cstdint>

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

/// Tells every peer that this rank has entered m; waits for nobody. `ordered` where peers touch user memory on the strength
/// of it: release half of [announce], acquired by await_entry.
PK_HD_POLICY
template <bool ordered, class X>
PK_HD void announce(X& x, const Operation& op, std::uint64_t m) {
  const View& view = x.view();
  if (x.cta() == 0) {
    x.each(static_cast<std::uint64_t>(view.nranks - 1), [&](std::uint64_t i) {
      const int peer = rank_at(view, 1 + static_cast<int>(i));
      x.template announce<ordered>(view.progress(peer, view.rank), make_word(m, op.fingerprint), peer);
    });
  }
}

/// Enters the next operation, whose number is returned.
PK_HD_POLICY
template <bool ordered, class X>
PK_HD std::uint64_t enter(X& x, const Operation& op) {
  const std::uint64_t m = x.epoch() + 1;
  announce<ordered>(x, op, m);
  return m;
}

/// Items of which every CTA does its part, as share() deals them out.
PK_HD_POLICY
template <class X>
PK_HD std::uint32_t share_begin(X& x, std::uint32_t n) {
  if constexpr (requires { x.share_begin(); }) {
    return x.share_begin();
  } else {
    return static_cast<std::uint32_t>(column_of(std::uint64_t{n} * 8, x.cta(), x.ctas()).begin / 8);
  }
}

/// f(i) for this CTA's part of the items i < n, as each() does; the same part on every rank. share_begin() is the first of
/// the calling thread. Packets of 8 bytes are items; there are less than 2^32 of them.
PK_HD_POLICY
template <class X, class F>
PK_HD void share(X& x, std::uint32_t n, const F& f) {
  if constexpr (requires { x.share(n, f); }) {
    x.share(n, f);
  } else {
    const Part column = column_of(std::uint64_t{n} * 8, x.cta(), x.ctas());
    x.each(column.bytes / 8, [&](std::uint64_t i) { f(static_cast<std::uint32_t>(column.begin / 8 + i)); });
  }
}

/// Within each(): puts word_for(r) into the packet at packet_for(r) for every other rank r that goes_to(r). The words are
/// read together before the first is sent.
PK_HD_POLICY
template <class X, class GoesTo, class WordFor, class PacketFor>
PK_HD void distribute(X& x, std::uint64_t tag, const GoesTo& goes_to, const WordFor& word_for, const PacketFor& packet_for) {
  constexpr int kTogether = 8;
  const View& view = x.view();
  for (int begin = 1; begin < view.nranks; begin += kTogether) {
    std::uint64_t words[kTogether] = {};
    PK_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (begin + i >= view.nranks) break;
      const int peer = rank_at(view, begin + i);
      if (goes_to(peer)) words[i] = word_for(peer);
    }
    PK_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (begin + i >= view.nranks) break;
      const int peer = rank_at(view, begin + i);
      if (goes_to(peer)) x.put(packet_for(peer), words[i], tag);
    }
  }
}

/// Within each(): calls sink(r, word) for r = 0, 1, ... nranks - 1, with the payload of the packet at packet_of(r) where
/// another rank comes_from(r), else with 0.
PK_HD_POLICY
template <class X, class ComesFrom, class PacketOf, class Sink>
PK_HD void collect(X& x, std::uint64_t tag, const ComesFrom& comes_from, const PacketOf& packet_of, const Sink& sink) {
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
  if (x.heard() + 1 == m) return true;
  x.each(static_cast<std::uint64_t>(view.nranks - 1), [&](std::uint64_t i) {
    const int peer = rank_at(view, 1 + static_cast<int>(i));
    x.await(view.progress(view.rank, peer), make_word(m - 1, 0), peer, "licence");
  });
  x.barrier();
  return !x.failed();
}

/// Until `peer` has entered m itself, with the same call: its user memory may be touched then.
/// Acquire half of [announce].
PK_HD_POLICY
template <class X>
PK_HD bool await_entry(X& x, const Operation& op, std::uint64_t m, int peer) {
  const View& view = x.view();
  const std::uint64_t* word = view.progress(view.rank, peer);
  return x.await(word, make_word(m, 0), peer, "entry") && x.agrees(word, make_word(m, op.fingerprint), peer);
}

/// Says what this rank's raw slots of operation m hold. Before the first publish to `peer`, which carries it.
PK_HD_POLICY
template <class X>
PK_HD void write_header(X& x, const Operation& op, std::uint64_t m, int peer) {
  const View& view = x.view();
  x.store(view.header(peer, m, x.cta(), view.rank), make_word(m, op.fingerprint));
}
/// After the first arrival from `peer`, which it came with.
PK_HD_POLICY
template <class X>
PK_HD bool check_header(X& x, const Operation& op, std::uint64_t m, int peer) {
  const View& view = x.view();
  return x.agrees(view.header(view.rank, m, x.cta(), peer), make_word(m, op.fingerprint), peer);
}

/// Every rank's pre-multiplier, by packets of their own: they are part of no fingerprint and may differ.
PK_HD_POLICY
template <class X>
PK_HD bool exchange_scalars(X& x, const Operation& op, std::uint64_t m) {
  if (op.kind != numerics::ReduceKind::kPreMulSum) return true;
  const View& view = x.view();
  const std::uint64_t tag = make_word(m, op.fingerprint);
  if (x.cta() == 0) {
    x.each(static_cast<std::uint64_t>(view.nranks - 1), [&](std::uint64_t i) {
      const int peer = rank_at(view, 1 + static_cast<int>(i));
      x.put(view.scalar(peer, m, view.rank), op.scalar, tag);
      x.nudge(peer);
    });
  }
  x.each(static_cast<std::uint64_t>(view.nranks), [&](std::uint64_t i) {
    const int peer = static_cast<int>(i);
    if (peer != view.rank) x.poll(view.scalar(view.rank, m, peer), tag, peer);
  });
  x.barrier();
  return !x.failed();
}

/// The pre-multiplier of a rank, after exchange_scalars.
struct Scalars {
  const View& view;
  const Operation& op;
  std::uint64_t m;
  PK_HD std::uint64_t operator()(int rank) const {
    return rank == view.rank ? op.scalar : view.scalar(view.rank, m, rank)->data;
  }
};

}  // namespace pkcomm
