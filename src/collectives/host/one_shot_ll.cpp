// one_shot_ll on the host: a schedule for movement, and one for each type and operation.
#include "collectives/one_shot_ll.hpp"

#include "collectives/descriptors.hpp"
#include "collectives/host/schedules.hpp"

namespace pkcomm::host {
namespace {

struct Reducing {
  Policy& policy;
  const Operation& op;
  template <class T, class Op>
  bool operator()() const {
    return one_shot_ll<WordReduction<T, Op>>(policy, op);
  }
};

}  // namespace

bool run_one_shot_ll(Policy& policy, const Operation& op) {
  if (op.collective == Collective::kBarrier) return barrier_ll(policy, op);
  if (!reduces(op.collective)) return one_shot_ll<Movement>(policy, op);
  return numerics::visit_reduction(op.dtype, op.kind, Reducing{policy, op});
}

}  // namespace pkcomm::host
