// pairwise: send, receive, groups of them, and all_to_all_v. Each ordered pair of ranks has its own ring at the receiver
// and its own counters, which never turn back and know nothing of the communicator's operations.
//
//   [message]   release: the sender, after `bytes`;           acquire: the receiver, before `bytes`
//   [sent]      release: the sender, after its copies;        acquire: the receiver, before it reads the chunks
//   [consumed]  release: the receiver, after it read chunks;  acquire: the sender, before it writes there again
//
// A send is over when the receiver has consumed all of it: so the message words are free for the next one, and sends of
// all sizes behave alike. A transfer advances by steps that never wait, so that none holds up another. X has
// kChunksTogether, the most chunks that a step copies before it says so.
#pragma once

#include "collectives/one_way.hpp"

namespace pkcomm {

struct Transfer {
  std::byte* data = nullptr;  // read from by a send, written to by a receive
  std::uint64_t bytes = 0;
  std::int32_t peer = 0;
  bool sends = false;
};

/// One direction of a pair while its transfers run, one after the other. The positions are the owner's alone: it takes
/// them from memory and gives them back when all is done, so that every thread of a block may have them in registers.
struct Lane {
  std::uint64_t messages = 0;  // begun, ever
  std::uint64_t chunks = 0;    // written by a sender or consumed by a receiver, ever
  std::uint64_t done = 0;      // bytes copied of the running transfer
  std::int32_t peer = 0;
  bool sends = false;
  bool begun = false;  // the running transfer's message has been announced, or seen
};

PK_HD inline Lane open_lane(const View& view, int peer, bool sends) {
  const PairWords* const mine = view.pair(view.rank, peer);
  return {sends ? mine->messages_out : mine->messages_in,
          sends ? mine->my_sent : mine->my_consumed,
          0,
          peer,
          sends,
          false};
}
PK_HD_POLICY
template <class X>
PK_HD void close_lane(X& x, const Lane& lane) {
  PairWords* const mine = x.view().pair(x.view().rank, lane.peer);
  x.store(lane.sends ? &mine->messages_out : &mine->messages_in, lane.messages);
  x.store(lane.sends ? &mine->my_sent : &mine->my_consumed, lane.chunks);
}

enum class Progress { kNone, kSome, kDone, kFailed };

namespace detail {

/// Copies chunks while there are any, `limit` being the count of chunks up to which that is allowed, and publishes the
/// count in `word`. chunk_copy(ring position, offset, bytes) copies one.
PK_HD_POLICY
template <class X, class CopyChunk>
PK_HD bool advance(X& x, Lane& lane, std::uint64_t total, std::uint64_t limit, std::uint64_t* word,
                   const CopyChunk& copy_chunk) {
  const std::uint64_t chunk = x.view().layout.pair_chunk;
  bool some = false;
  while (lane.done < total && lane.chunks < limit) {
    for (int together = 0; together < X::kChunksTogether && lane.done < total && lane.chunks < limit;
         ++together) {
      const std::uint64_t bytes = total - lane.done < chunk ? total - lane.done : chunk;
      copy_chunk(lane.chunks, lane.done, bytes);
      lane.done += bytes;
      ++lane.chunks;
    }
    x.publish(word, lane.chunks, lane.peer);
    some = true;
  }
  return some;
}

}  // namespace detail

PK_HD_POLICY
template <class X>
PK_HD Progress step_send(X& x, Lane& lane, const Transfer& transfer) {
  const View& view = x.view();
  const int me = view.rank, peer = lane.peer;
  PairWords* const theirs = view.pair(peer, me);  // what I write
  bool some = false;
  if (!lane.begun) {
    lane.begun = some = true;
    x.store(&theirs->bytes, transfer.bytes);
    x.publish(&theirs->message, ++lane.messages, peer);
  }
  const std::uint64_t consumed = x.load(&view.pair(me, peer)->consumed);
  some |= detail::advance(x, lane, transfer.bytes, consumed + kPairChunks, &theirs->sent,
                          [&](std::uint64_t chunk, std::uint64_t at, std::uint64_t bytes) {
                            x.copy(view.ring(peer, me, chunk), transfer.data + at, bytes);
                          });
  if (lane.done == transfer.bytes && consumed == lane.chunks) return Progress::kDone;
  return some ? Progress::kSome : Progress::kNone;
}

PK_HD_POLICY
template <class X>
PK_HD Progress step_receive(X& x, Lane& lane, const Transfer& transfer) {
  const View& view = x.view();
  const int me = view.rank, peer = lane.peer;
  const PairWords* const mine = view.pair(me, peer);  // what the peer writes
  bool some = false;
  if (!lane.begun) {
    if (x.load(&mine->message) <= lane.messages) return Progress::kNone;
    if (mine->bytes != transfer.bytes) {
      x.disagree(peer, mine->bytes, transfer.bytes);
      return Progress::kFailed;
    }
    ++lane.messages;
    lane.begun = some = true;
  }
  const std::uint64_t sent = x.load(&mine->sent);
  some |= detail::advance(x, lane, transfer.bytes, sent, &view.pair(peer, me)->consumed,
                          [&](std::uint64_t chunk, std::uint64_t at, std::uint64_t bytes) {
                            x.copy(transfer.data + at, view.ring(me, peer, chunk), bytes);
                          });
  if (lane.done == transfer.bytes) return Progress::kDone;
  return some ? Progress::kSome : Progress::kNone;
}

/// Advances the lane's running transfer as far as that goes without waiting. When it is done the next one may run.
PK_HD_POLICY
template <class X>
PK_HD Progress step(X& x, Lane& lane, const Transfer& transfer) {
  const Progress progress = lane.sends ? step_send(x, lane, transfer) : step_receive(x, lane, transfer);
  if (progress == Progress::kDone) {
    lane.done = 0;
    lane.begun = false;
  }
  return progress;
}

/// What a lane waits for when a step did nothing: *word >= wanted, which its peer writes.
struct Awaited {
  const std::uint64_t* word;
  std::uint64_t wanted;
};
PK_HD inline Awaited awaited(const View& view, const Lane& lane, const Transfer& transfer) {
  const PairWords* const mine = view.pair(view.rank, lane.peer);
  if (lane.sends) {
    return {&mine->consumed, lane.done < transfer.bytes ? lane.chunks + 1 - kPairChunks : lane.chunks};
  }
  return lane.begun ? Awaited{&mine->sent, lane.chunks + 1} : Awaited{&mine->message, lane.messages + 1};
}

}  // namespace pkcomm
