// two_shot_ll on the host: a schedule for broadcast, and one for each type and operation.
#include "collectives/two_shot_ll.hpp"

#include "collectives/descriptors.hpp"
#include "collectives/host/schedules.hpp"

namespace pkcomm::host {
namespace {

struct Reducing {
  Policy& policy;
  const Operation& op;
  template <class T, class Op>
  bool operator()() const {
    return two_shot_ll<WordReduction<T, Op>>(policy, op);
  }
};

}  // namespace

bool run_two_shot_ll(Policy& policy, const Operation& op) {
  if (!reduces(op.collective)) return two_shot_ll<Movement>(policy, op);
  return numerics::visit_reduction(op.dtype, op.kind, Reducing{policy, op});
}

}  // namespace pkcomm::host
