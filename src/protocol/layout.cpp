// Computes the layout: control words for every peer, then the staging areas in fixed shares.
#include "protocol/layout.hpp"

#include <algorithm>

namespace pkcomm {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostPairChunk = 64 << 10;  // fits in a core's cache beside its copy
constexpr std::uint64_t kMostPackets =
    512 << 10;  // payload of one LL slot; two_shot_ll is the quickest up to 1 MiB on 2 and 4 H200

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}
constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) { return value / unit * unit; }

}  // namespace

Layout Layout::make(int nranks, std::uint64_t staging) {
  const auto ranks = static_cast<std::uint64_t>(nranks);
  const std::uint64_t slots = 4 * ranks;  // parity, half, source
  Layout layout{};
  std::uint64_t end = round_up(sizeof(ControlBlock), kPage);
  const auto place = [&end](std::uint64_t size) {
    const std::uint64_t start = end;
    end = round_up(end + size, kPage);
    return start;
  };
  layout.progress = place(ranks * kLine);
  layout.headers = place(2 * kMaxCtas * ranks * kLine);
  layout.arrive = place(2 * kMaxCtas * ranks * kLine);
  layout.credit = place(2 * kMaxCtas * ranks * kLine);
  layout.scalars = place(2 * ranks * kLine);
  layout.signals = place(kSignals * ranks * kLine);
  layout.waited = place(kSignals * ranks * kLine);
  layout.pairs = place(ranks * sizeof(PairWords));
  layout.calls = place(kCalls * sizeof(CallRecord));
  layout.own = place(kOwnBytes);

  // The areas share what the words above leave, so that all of it is no more than was asked for. With very many ranks the
  // words take more than half; the areas then have that half all the same. Shares: 1/4 packets, 3/8 raw, 1/8 copy
  // engine, 1/4 pair rings.
  constexpr std::uint64_t kRounding = 4 * kPage;
  staging = std::max(staging / 2, staging - std::min(staging, end + kRounding));
  layout.ll_capacity = std::clamp<std::uint64_t>(round_down(staging / 4 / slots / 2, 64), 64, kMostPackets);
  layout.slot_bytes = std::max<std::uint64_t>(round_down(staging / 8 * 3 / slots, 1024), 1024);
  layout.engine_bytes = std::max<std::uint64_t>(round_down(staging / 8 / slots, 1024), 1024);
  layout.pair_chunk =
      std::clamp<std::uint64_t>(round_down(staging / 4 / ranks / kPairChunks, 64), 64, kMostPairChunk);
  layout.ll = place(slots * layout.ll_capacity * 2);
  layout.raw = place(slots * layout.slot_bytes);
  layout.engine = place(slots * layout.engine_bytes);
  layout.rings = place(ranks * kPairChunks * layout.pair_chunk);
  layout.bytes = end;
  return layout;
}

}  // namespace pkcomm
