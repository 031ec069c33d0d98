// The direct schedules on the host, for each mover; and multimem with the switch's meaning done by a loop over the peers.
#include "collectives/direct.hpp"

#include "collectives/descriptors.hpp"
#include "collectives/host/rows_reduction.hpp"
#include "collectives/host/schedules.hpp"
#include "collectives/movers.hpp"
#include "collectives/multimem.hpp"

namespace pkcomm::host {
namespace {

template <class Mover>
bool direct(Policy& policy, const Operation& op) {
  return reduces(op.collective) ? direct_reduction<Mover>(policy, op, RowsReduction(op))
                                : direct_movement<Mover>(policy, op);
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
