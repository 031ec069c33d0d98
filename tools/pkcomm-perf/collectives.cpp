// The table of operations. An operation with blocks takes the size as all blocks together, and a block is a
// whole number of elements (nccl-tests rounds it to 16 bytes, so that small sizes vanish there).
#include "collectives.hpp"

#include <algorithm>
#include <array>

namespace pkcomm::perf {

namespace {

std::size_t times(std::size_t count, int ranks) { return count * static_cast<std::size_t>(ranks); }

// ---- shapes

Shape whole_shape(std::size_t elements, int) { return {elements, elements, elements, elements}; }

Shape gathering_shape(std::size_t elements, int nranks) {
  const std::size_t block = elements / static_cast<std::size_t>(nranks);
  return {block, block, times(block, nranks), times(block, nranks)};
}

Shape scattering_shape(std::size_t elements, int nranks) {
  const std::size_t block = elements / static_cast<std::size_t>(nranks);
  return {block, times(block, nranks), block, times(block, nranks)};
}

Shape exchanging_shape(std::size_t elements, int nranks) {
  const std::size_t block = elements / static_cast<std::size_t>(nranks);
  return {block, times(block, nranks), times(block, nranks), times(block, nranks)};
}

// The size is the largest total that any rank sends or receives.
Shape uneven_shape(std::size_t elements, int nranks) {
  Shape shape = exchanging_shape(elements, nranks);
  shape.sized = 0;
  for (int i = 0; i < nranks; ++i) {
    std::size_t sent = 0;
    std::size_t received = 0;
    for (int j = 0; j < nranks; ++j) {
      sent += pair_count(shape.count, i, j);
      received += pair_count(shape.count, j, i);
    }
    shape.sized = std::max({shape.sized, sent, received});
  }
  return shape;
}

Shape no_shape(std::size_t, int) { return {}; }

// ---- outputs

using Outputs = std::vector<Segment>&;

int previous(const Seat& seat) { return (seat.rank + seat.nranks - 1) % seat.nranks; }
int next(const Seat& seat) { return (seat.rank + 1) % seat.nranks; }

void reduced_everywhere(std::size_t count, const Seat&, Outputs out) {
  out.push_back({Segment::kResult, 0, count, 0, 0});
}

void reduced_at_root(std::size_t count, const Seat& seat, Outputs out) {
  if (seat.rank == seat.root) out.push_back({Segment::kResult, 0, count, 0, 0});
}

void reduced_block(std::size_t count, const Seat& seat, Outputs out) {
  out.push_back({Segment::kResult, 0, count, 0, times(count, seat.rank)});
}

void from_root(std::size_t count, const Seat& seat, Outputs out) {
  out.push_back({Segment::kInput, 0, count, seat.root, 0});
}

void from_everybody(std::size_t count, const Seat& seat, Outputs out) {
  for (int i = 0; i < seat.nranks; ++i) out.push_back({Segment::kInput, times(count, i), count, i, 0});
}

void from_everybody_at_root(std::size_t count, const Seat& seat, Outputs out) {
  if (seat.rank == seat.root) from_everybody(count, seat, out);
}

void block_of_everybody(std::size_t count, const Seat& seat, Outputs out) {
  for (int i = 0; i < seat.nranks; ++i) {
    out.push_back({Segment::kInput, times(count, i), count, i, times(count, seat.rank)});
  }
}

void uneven_block_of_everybody(std::size_t count, const Seat& seat, Outputs out) {
  for (int i = 0; i < seat.nranks; ++i) {
    out.push_back(
        {Segment::kInput, times(count, i), pair_count(count, i, seat.rank), i, times(count, seat.rank)});
  }
}

void block_of_root(std::size_t count, const Seat& seat, Outputs out) {
  out.push_back({Segment::kInput, 0, count, seat.root, times(count, seat.rank)});
}

void from_previous(std::size_t count, const Seat& seat, Outputs out) {
  out.push_back({Segment::kInput, 0, count, previous(seat), 0});
}

void nothing(std::size_t, const Seat&, Outputs) {}

// ---- where an in-place call has its input and output

InPlace same_place(std::size_t, const Seat&) { return {0, 0}; }
InPlace send_own_block(std::size_t count, const Seat& seat) { return {times(count, seat.rank), 0}; }
InPlace receive_own_block(std::size_t count, const Seat& seat) { return {0, times(count, seat.rank)}; }
// Only the root is in place; the others use the same offset, as symmetric memory must lie at one.
InPlace send_root_block(std::size_t count, const Seat& seat) { return {times(count, seat.root), 0}; }
InPlace receive_root_block(std::size_t count, const Seat& seat) { return {0, times(count, seat.root)}; }

// ---- calls

pkcommResult_t all_reduce(const Call& c) {
  return pkcommAllReduce(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream);
}
pkcommResult_t reduce(const Call& c) {
  return pkcommReduce(c.send, c.recv, c.count, c.type, c.op, c.seat.root, c.comm, c.stream);
}
pkcommResult_t broadcast(const Call& c) {
  return pkcommBroadcast(c.send, c.recv, c.count, c.type, c.seat.root, c.comm, c.stream);
}
pkcommResult_t all_gather(const Call& c) {
  return pkcommAllGather(c.send, c.recv, c.count, c.type, c.comm, c.stream);
}
pkcommResult_t reduce_scatter(const Call& c) {
  return pkcommReduceScatter(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream);
}
pkcommResult_t all_to_all(const Call& c) {
  return pkcommAllToAll(c.send, c.recv, c.count, c.type, c.comm, c.stream);
}
pkcommResult_t all_to_all_v(const Call& c) {
  return pkcommAllToAllV(c.send, c.send_counts.data(), c.displacements.data(), c.recv, c.recv_counts.data(),
                         c.displacements.data(), c.type, c.comm, c.stream);
}
pkcommResult_t gather(const Call& c) {
  return pkcommGather(c.send, c.recv, c.count, c.type, c.seat.root, c.comm, c.stream);
}
pkcommResult_t scatter(const Call& c) {
  return pkcommScatter(c.send, c.recv, c.count, c.type, c.seat.root, c.comm, c.stream);
}

// A ring: to the next rank, from the one before.
pkcommResult_t send_recv(const Call& c) {
  if (const pkcommResult_t result = pkcommGroupStart(); result != pkcommSuccess) return result;
  pkcommResult_t first = pkcommSend(c.send, c.count, c.type, next(c.seat), c.comm, c.stream);
  if (first == pkcommSuccess) first = pkcommRecv(c.recv, c.count, c.type, previous(c.seat), c.comm, c.stream);
  const pkcommResult_t end = pkcommGroupEnd();
  return first != pkcommSuccess ? first : end;
}

// Into the next rank's memory; done here when the rank before has signalled that its put has arrived.
pkcommResult_t put(const Call& c) {
  constexpr int kSignal = 0;
  pkcommResult_t result = pkcommSuccess;
  if (c.count > 0) result = pkcommPut(c.send, c.recv, c.count * c.element, next(c.seat), c.comm, c.stream);
  if (result == pkcommSuccess) result = pkcommSignal(next(c.seat), kSignal, c.comm, c.stream);
  if (result == pkcommSuccess) result = pkcommWaitSignal(previous(c.seat), kSignal, 1, c.comm, c.stream);
  return result;
}

pkcommResult_t barrier(const Call& c) { return pkcommBarrier(c.comm, c.stream); }

// ---- the table, in the order of CollectiveId

using enum CollectiveId;

constexpr std::array kCollectives = {
    //                                      reduces rooted in_place data  heap   grouped
    Collective{kAllReduce, "all_reduce", "", true, false, true, true, false, true,  //
               pkcommCollAllReduce, whole_shape, reduced_everywhere, same_place, all_reduce},
    Collective{kReduce, "reduce", "", true, true, true, true, false, true,  //
               pkcommCollReduce, whole_shape, reduced_at_root, same_place, reduce},
    Collective{kBroadcast, "broadcast", "", false, true, true, true, false, true,  //
               pkcommCollBroadcast, whole_shape, from_root, same_place, broadcast},
    Collective{kAllGather, "all_gather", "", false, false, true, true, false, true,  //
               pkcommCollAllGather, gathering_shape, from_everybody, send_own_block, all_gather},
    Collective{kReduceScatter, "reduce_scatter", "", true, false, true, true, false, true,  //
               pkcommCollReduceScatter, scattering_shape, reduced_block, receive_own_block, reduce_scatter},
    Collective{kAllToAll, "all_to_all", "alltoall", false, false, false, true, false, true,  //
               pkcommCollAllToAll, exchanging_shape, block_of_everybody, same_place, all_to_all},
    Collective{kAllToAllV, "all_to_all_v", "alltoallv", false, false, false, true, false, true,  //
               pkcommCollAllToAllV, uneven_shape, uneven_block_of_everybody, same_place, all_to_all_v},
    Collective{kGather, "gather", "", false, true, true, true, false, true,  //
               pkcommCollGather, gathering_shape, from_everybody_at_root, send_root_block, gather},
    Collective{kScatter, "scatter", "", false, true, true, true, false, true,  //
               pkcommCollScatter, scattering_shape, block_of_root, receive_root_block, scatter},
    Collective{kSendRecv, "sendrecv", "send_recv", false, false, false, true, false, true,  //
               pkcommCollSendRecv, whole_shape, from_previous, same_place, send_recv},
    // A wait and the signal that it waits for belong to different calls: repeated one by one, not in a group.
    Collective{kPut, "put", "", false, false, false, true, true, false,  //
               -1, whole_shape, from_previous, same_place, put},
    Collective{kBarrier, "barrier", "", false, false, false, false, false, true,  //
               pkcommCollBarrier, no_shape, nothing, same_place, barrier},
};

static_assert([] {
  for (std::size_t i = 0; i < kCollectives.size(); ++i) {
    if (kCollectives[i].id != static_cast<CollectiveId>(i)) return false;
  }
  return kCollectives.back().id == kBarrier;
}());

}  // namespace

std::span<const Collective> collectives() { return kCollectives; }

const Collective& describe(CollectiveId id) { return kCollectives[static_cast<std::size_t>(id)]; }

Result<std::vector<CollectiveId>> find_collectives(std::string_view text) {
  std::vector<CollectiveId> found;
  const std::string whole(text);
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    if (word.ends_with("_perf")) word.remove_suffix(5);
    const std::size_t before = found.size();
    std::string known;
    for (const Collective& collective : kCollectives) {
      const bool named = word == collective.name || (!word.empty() && word == collective.alias);
      if (named || word == "all") found.push_back(collective.id);
      known += std::string(collective.name) + ", ";
    }
    if (found.size() == before)
      return Error{"'" + std::string(word) + "' is no collective; known are " + known + "all"};
    if (comma == std::string_view::npos) return found;
    text.remove_prefix(comma + 1);
  }
}

std::size_t pair_count(std::size_t block, int from, int to) {
  // Full, half, three quarters and empty blocks in turn, and no symmetry between the two directions of a
  // pair.
  switch ((from + 2 * to) % 4) {
    case 0:
      return block;
    case 1:
      return block / 2;
    case 2:
      return block - block / 4;
    default:
      return 0;
  }
}

void set_pair_counts(Call& call) {
  const int nranks = call.seat.nranks;
  call.send_counts.clear();
  call.recv_counts.clear();
  call.displacements.clear();
  for (int peer = 0; peer < nranks; ++peer) {
    call.send_counts.push_back(pair_count(call.count, call.seat.rank, peer));
    call.recv_counts.push_back(pair_count(call.count, peer, call.seat.rank));
    call.displacements.push_back(times(call.count, peer));
  }
}

}  // namespace pkcomm::perf
