// Runs one rank's operations on the host, one at a time, on whatever thread drives the stream. Owns what outlives a
// single operation: the waiter with the first failure, and the late stores' order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/one_sided.hpp"
#include "collectives/operation.hpp"
#include "collectives/pairwise.hpp"
#include "platform/host/policy.hpp"

namespace pkcomm::host {

class Executor {
 public:
  /// `seed`: PKCOMM_HOST_SEED; all copies and packets are then late.
  Executor(const View& view, WaiterOptions options, std::optional<std::uint64_t> seed);

  /// A collective by `algorithm` with `ctas` columns.
  Status run(const Operation& op, Algorithm algorithm, int ctas);
  /// Sends and receives, in order within each pair and direction; sends to oneself match receives from oneself.
  Status run(std::span<const Transfer> transfers);
  /// The same as a collective: announced, so that calls that do not match are found out.
  Status run_all_to_all_v(const Operation& op, std::span<const Transfer> transfers);

  Status put(const PutWork& work);
  Status signal(const SignalWork& work);
  Status wait_signal(const WaitSignalWork& work);

  Waiter& waiter() { return waiter_; }

 private:
  bool run_segment(const Operation& op, Algorithm algorithm, int ctas);
  /// `word`: of the operation, 0 for those that have no number.
  bool begin(const Operation& op, std::uint64_t word);
  bool transfer_all(Policy& policy, std::span<const Transfer> transfers);
  Policy policy(int ctas);

  Waiter waiter_;
  LateStores late_;
  const bool all_late_;
  CopyEngine engine_;
};

}  // namespace pkcomm::host
