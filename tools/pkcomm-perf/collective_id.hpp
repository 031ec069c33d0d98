// The operations that the tool can measure, by number. Their names and behaviour are one table, in
// collectives.cpp.
#pragma once

namespace pkcomm::perf {

enum class CollectiveId {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kAllToAllV,
  kGather,
  kScatter,
  kSendRecv,
  kPut,
  kBarrier,
};

}  // namespace pkcomm::perf
