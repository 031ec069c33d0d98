// What a time means in GB/s. The definitions are those of nccl-tests (doc/PERFORMANCE.md there derives them),
// so that figures of both tools may stand side by side: 1 GB is 1e9 bytes, algbw is size over time, and busbw
// scales it by the share of the bytes that the busiest link must carry.
#pragma once

#include <cstddef>

#include "collective_id.hpp"

namespace pkcomm::perf {

struct Bandwidth {
  double algbw = 0;  // GB/s
  double busbw = 0;  // GB/s
};

/// busbw over algbw. One rank sends nothing to anybody: 0, and the reports say that it has no meaning.
inline double bus_factor(CollectiveId collective, int nranks) {
  if (nranks <= 1) return 0;
  const double n = nranks;
  switch (collective) {
    case CollectiveId::kAllReduce:
      return 2 * (n - 1) / n;
    case CollectiveId::kAllGather:
    case CollectiveId::kReduceScatter:
    case CollectiveId::kAllToAll:
    case CollectiveId::kAllToAllV:
    case CollectiveId::kGather:
    case CollectiveId::kScatter:
      return (n - 1) / n;
    case CollectiveId::kReduce:
    case CollectiveId::kBroadcast:
    case CollectiveId::kSendRecv:
    case CollectiveId::kPut:
      return 1;
    case CollectiveId::kBarrier:
      return 0;
  }
  return 0;
}

/// `bytes` is the size column, `time_us` the time column.
inline Bandwidth bandwidth(CollectiveId collective, int nranks, std::size_t bytes, double time_us) {
  if (!(time_us > 0)) return {};
  const double algbw = static_cast<double>(bytes) / time_us * 1e-3;
  return {algbw, algbw * bus_factor(collective, nranks)};
}

}  // namespace pkcomm::perf
