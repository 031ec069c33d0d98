// The dispatcher of one communicator: the tuning table of its machine, the environment's overrides and the agreed
// capabilities, bound together once at init. Any thread may ask; the answer to a
// request is always the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/status.hpp"
#include "dispatch/overrides.hpp"
#include "dispatch/plan.hpp"
#include "dispatch/plan_cache.hpp"
#include "dispatch/tuning.hpp"
#include "topology/topology.hpp"

namespace pkcomm::dispatch {

/// The environment's part: PKCOMM_ALGORITHM, PKCOMM_MECHANISM, PKCOMM_CHUNK, PKCOMM_TUNING.
struct Settings {
  std::vector<environment::Rule> algorithm;
  std::vector<environment::Rule> mechanism;
  std::size_t chunk_bytes = 0;  ///< 0: the table's
  std::string tuning_file;      ///< empty: the built-in table
};
Settings settings_from_environment();

class Dispatcher {
 public:
  /// Reads the tuning file if one is named. Parts of the settings that cannot be honoured (an unknown name, another
  /// machine's table) are left out, each with one warning; nothing here fails for them.
  static Result<Dispatcher> create(const Topology& topology, Capabilities capabilities,
                                   const Settings& settings);

  Result<Plan> plan(const Request& request) const;
  Explanation explain(const Request& request) const;

  /// Of everything that a decision rests on but the request: build, table, overrides, capabilities. Ranks whose values
  /// differ would decide differently; init compares them.
  std::uint64_t agreement_hash() const noexcept { return agreement_hash_; }
  const Capabilities& capabilities() const noexcept { return capabilities_; }
  const Tuning& tuning() const noexcept { return tuning_; }

 private:
  Dispatcher() = default;
  void complain(environment::Var var, const Request& request, const Plan& plan) const;

  Capabilities capabilities_;
  Tuning tuning_;
  Overrides overrides_;
  std::uint64_t agreement_hash_ = 0;
  std::unique_ptr<PlanCache> recent_ = std::make_unique<PlanCache>();
  /// A bit for each complaint made: calls are many, and the log's own list of what was said has a lock.
  std::unique_ptr<std::atomic<std::uint32_t>> complained_ = std::make_unique<std::atomic<std::uint32_t>>(0);
};

/// Capabilities as far as a topology tells them: for explanations without a communicator. The sizes are left at 0; they
/// come from the layout of staging.
Capabilities capabilities_of(const Topology& topology);

}  // namespace pkcomm::dispatch
