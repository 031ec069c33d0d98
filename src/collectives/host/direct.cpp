// The direct schedules on the host, for each mover; and multimem with the switch's meaning done by a loop over the peers.
#include "collectives/descriptors.hpp"
#include "collectives/direct_staged.hpp"
#include "collectives/direct_zero_copy.hpp"
#include "collectives/host/rows_reduction.hpp"
#include "collectives/host/schedules.hpp"
#include "collectives/movers.hpp"
#include "collectives/multimem.hpp"
#include "collectives/one_shot_ll.hpp"

namespace pkcomm::host {
namespace {

bool pushes(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kAllToAll ||
         collective == Collective::kBroadcast || collective == Collective::kScatter;
}

template <class Mover>
bool direct(Policy& policy, const Operation& op) {
  const bool twice = op.collective == Collective::kAllReduce || op.collective == Collective::kReduce;
  if (!reduces(op.collective)) {
    if (!op.zero_copy) return exchange_staged<Mover>(policy, op, Movement{});
    return pushes(op.collective) ? push_zero_copy<Mover>(policy, op)
                                 : pull_zero_copy<Mover>(policy, op, Movement{});
  }
  const RowsReduction reduction(op);
  if (!op.zero_copy) {
    return twice ? reduce_twice_staged<Mover>(policy, op, reduction)
                 : exchange_staged<Mover>(policy, op, reduction);
  }
  return op.collective == Collective::kAllReduce ? all_reduce_zero_copy<Mover>(policy, op, reduction)
                                                 : pull_zero_copy<Mover>(policy, op, reduction);
}

/// The switch's meaning by unicast.
class PeerLoop {
 public:
  void reduce(Policy& policy, const Operation& op, std::uint64_t offset, std::uint64_t bytes, std::byte* to) {
    const View& view = policy.view();
    RowsReduction(op).reduce(
        policy, bytes, view.nranks, [&](int rank) -> const std::byte* { return view.at(rank, offset); }, to,
        numerics::NoScalars{});
  }
  void store(Policy& policy, std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
    const View& view = policy.view();
    for (int step = 0; step < view.nranks; ++step) {
      std::byte* const to = view.at((view.rank + step) % view.nranks, offset);
      if (to != from) policy.copy(to, from, bytes);
    }
  }
  void drain(Policy& policy) { policy.settle(); }
};

}  // namespace

bool run_direct_ldst(Policy& policy, const Operation& op) { return direct<RegisterMover>(policy, op); }
bool run_direct_tma(Policy& policy, const Operation& op) { return direct<BulkMover>(policy, op); }
bool run_copy_engine(Policy& policy, const Operation& op) { return direct<EngineMover>(policy, op); }

bool run_multimem_emulated(Policy& policy, const Operation& op) {
  PeerLoop fabric;
  return multimem(policy, op, fabric);
}

}  // namespace pkcomm::host
