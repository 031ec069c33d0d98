// Sends and receives as the parameter of one kernel launch, and how a list of them becomes launches.
//
// A lane is one direction of a pair, or what this rank sends itself. Transfers of a lane run in order, lanes side by side: so
// all lanes have to be in a launch. Where the transfers are too many for one, each launch takes the next few messages of
// every lane. That cannot block, whatever numbers the peers take: of all messages that wait, those with the least index
// within their lane are under way at both ends, since a launch ends only once all its messages have been consumed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/pairwise.hpp"

namespace pkcomm::cuda {

/// kMost: transfers, and lanes, of a launch. By value within 32764 bytes of kernel parameters, beside View and the others.
template <int kMost>
struct TransferBatch {
  struct Lane {
    std::uint16_t peer;
    std::uint16_t sends;
    std::uint16_t first, count;  // of `buffers`
  };
  struct Buffer {
    std::byte* data;
    std::uint64_t bytes;
  };
  Operation op;         // kAllToAllV: the transfers are a numbered operation of that description
  std::int32_t lanes;   // to and from peers
  std::int32_t copies;  // to this rank itself: buffers [0, 2 copies), each target followed by its source
  Lane lane[kMost];
  Buffer buffers[kMost];
};

inline constexpr int kFewTransfers = 32;    // 1 KiB of parameters
inline constexpr int kManyTransfers = 512;  // 12 KiB

/// The launches that the transfers of one group become, in order; one at least. An error where there are more lanes than
/// kMost. Of an all_to_all_v, which has at most one message in a lane, there is one launch.
template <int kMost>
Result<std::vector<TransferBatch<kMost>>> transfer_batches(const Operation& op,
                                                           std::span<const Transfer> transfers, int rank,
                                                           int nranks) {
  // Two lanes a rank: what it sends this rank and what it gets; transfers of a lane keep their order.
  std::vector<std::vector<const Transfer*>> lanes(static_cast<std::size_t>(nranks) * 2);
  for (const Transfer& transfer : transfers) {
    lanes[static_cast<std::size_t>(transfer.peer) * 2 + (transfer.sends ? 1 : 0)].push_back(&transfer);
  }
  std::size_t open = 0, longest = 0;
  for (const auto& lane : lanes) {
    open += lane.empty() ? 0 : 1;
    longest = std::max(longest, lane.size());
  }
  if (open > kMost) {
    return Status(pkcommUnsupported, "transfers with " + std::to_string(open) +
                                         " peers and directions in one group; at most " +
                                         std::to_string(kMost) + " fit into a launch");
  }
  // Messages of a lane in a launch: as many as fit.
  const auto fits = [&](std::size_t messages) {
    std::size_t all = 0;
    for (const auto& lane : lanes) all += std::min(messages, lane.size());
    return all <= kMost;
  };
  std::size_t together = 1;
  while (together < longest && fits(together + 1)) ++together;
  const std::size_t self = static_cast<std::size_t>(rank) * 2;
  std::vector<TransferBatch<kMost>> batches;
  std::size_t begin = 0;
  do {
    TransferBatch<kMost>& batch = batches.emplace_back();
    batch.op = op;
    std::size_t used = 0;
    const auto take = [&](std::size_t lane, std::size_t message) {
      batch.buffers[used++] = {lanes[lane][message]->data, lanes[lane][message]->bytes};
    };
    const auto end_of = [&](std::size_t lane) { return std::min(begin + together, lanes[lane].size()); };
    for (std::size_t message = begin; message < end_of(self); ++message, ++batch.copies) {
      take(self, message);
      take(self + 1, message);
    }
    // Sends and receives begin with the next rank and go round, so that no rank is everybody's first.
    for (int step = 1; step < nranks; ++step) {
      const std::size_t to = static_cast<std::size_t>((rank + step) % nranks);
      const std::size_t from = static_cast<std::size_t>((rank + nranks - step) % nranks);
      for (const std::size_t lane : {to * 2 + 1, from * 2}) {
        if (begin >= lanes[lane].size()) continue;
        batch.lane[batch.lanes++] = {static_cast<std::uint16_t>(lane / 2),
                                     static_cast<std::uint16_t>(lane % 2), static_cast<std::uint16_t>(used),
                                     static_cast<std::uint16_t>(end_of(lane) - begin)};
        for (std::size_t message = begin; message < end_of(lane); ++message) take(lane, message);
      }
    }
    begin += together;
  } while (begin < longest);
  return batches;
}

}  // namespace pkcomm::cuda
