// Words of a call record; the names are those of the descriptors and of numerics.
#include "collectives/describe.hpp"

#include "collectives/descriptors.hpp"
#include "numerics/dispatch_type.hpp"

namespace pkcomm {

std::string describe_call(const CallRecord& call) {
  const auto collective = static_cast<Collective>(call.collective);
  std::string text(name(collective));
  if (collective == Collective::kBarrier) return text;
  text += ' ';
  text += numerics::name(static_cast<pkcommDataType_t>(call.dtype));
  text += ' ' + std::to_string(call.count);
  if (reduces(collective)) {
    text += ' ';
    text += numerics::name(static_cast<numerics::ReduceKind>(call.op));
  }
  if (collective == Collective::kBroadcast || collective == Collective::kReduce ||
      collective == Collective::kGather || collective == Collective::kScatter) {
    text += " root " + std::to_string(call.root);
  }
  return text;
}

}  // namespace pkcomm
