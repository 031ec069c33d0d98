// pairwise: send, receive, groups of them, and all_to_all_v. Each ordered pair of ranks has its own ring at the receiver
// and its own counters, which never turn back and know nothing of the communicator's operations.
//
//   [message]   release: the sender, after `bytes`;          acquire: the receiver, before `bytes`
//   [sent]      release: the sender, after a chunk's copy;    acquire: the receiver, before it reads the chunk
//   [consumed]  release: the receiver, after it read a chunk; acquire: the sender, before it writes there again
//
// A send is over when the receiver has consumed all of it: so the message words are free for the next one, and sends of
// all sizes behave alike. A transfer advances by steps that never wait, so that none holds up another.
#pragma once

#include "collectives/one_way.hpp"

namespace pkcomm {

struct Transfer {
  std::byte* data = nullptr;  // read from by a send, written to by a receive
  std::uint64_t bytes = 0;
  std::uint64_t done = 0;  // bytes copied
  std::int32_t peer = 0;
  bool sends = false;
  bool begun = false;
};

enum class Progress { kNone, kSome, kDone, kFailed };

PK_HD_POLICY
template <class X>
PK_HD Progress step_send(X& x, Transfer& transfer) {
  const View& view = x.view();
  const int me = view.rank, peer = transfer.peer;
  PairWords* const mine = view.pair(me, peer);    // consumed by the peer; my own positions
  PairWords* const theirs = view.pair(peer, me);  // what I have written
  Progress progress = Progress::kNone;
  if (!transfer.begun) {
    transfer.begun = true;
    x.store(&theirs->bytes, transfer.bytes);
    x.publish(&theirs->message, ++mine->messages_out, peer);
    progress = Progress::kSome;
  }
  const std::uint64_t consumed = x.load(&mine->consumed);
  while (transfer.done < transfer.bytes && mine->my_sent - consumed < kPairChunks) {
    const std::uint64_t left = transfer.bytes - transfer.done;
    const std::uint64_t bytes = left < view.layout.pair_chunk ? left : view.layout.pair_chunk;
    x.copy(view.ring(peer, me, mine->my_sent), transfer.data + transfer.done, bytes);
    transfer.done += bytes;
    x.publish(&theirs->sent, ++mine->my_sent, peer);
    progress = Progress::kSome;
  }
  return transfer.done == transfer.bytes && consumed == mine->my_sent ? Progress::kDone : progress;
}

PK_HD_POLICY
template <class X>
PK_HD Progress step_receive(X& x, Transfer& transfer) {
  const View& view = x.view();
  const int me = view.rank, peer = transfer.peer;
  PairWords* const mine = view.pair(me, peer);    // what the peer has written; my own positions
  PairWords* const theirs = view.pair(peer, me);  // credits go there
  Progress progress = Progress::kNone;
  if (!transfer.begun) {
    if (x.load(&mine->message) <= mine->messages_in) return Progress::kNone;
    if (mine->bytes != transfer.bytes) {
      x.disagree(peer, mine->bytes, transfer.bytes);
      return Progress::kFailed;
    }
    ++mine->messages_in;
    transfer.begun = true;
    progress = Progress::kSome;
  }
  const std::uint64_t sent = x.load(&mine->sent);
  while (transfer.done < transfer.bytes && mine->my_consumed < sent) {
    const std::uint64_t left = transfer.bytes - transfer.done;
    const std::uint64_t bytes = left < view.layout.pair_chunk ? left : view.layout.pair_chunk;
    x.copy(transfer.data + transfer.done, view.ring(me, peer, mine->my_consumed), bytes);
    transfer.done += bytes;
    x.publish(&theirs->consumed, ++mine->my_consumed, peer);
    progress = Progress::kSome;
  }
  return transfer.begun && transfer.done == transfer.bytes ? Progress::kDone : progress;
}

PK_HD_POLICY
template <class X>
PK_HD Progress step(X& x, Transfer& transfer) {
  return transfer.sends ? step_send(x, transfer) : step_receive(x, transfer);
}

}  // namespace pkcomm
