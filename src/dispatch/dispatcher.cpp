// Binds table, overrides and capabilities together, and says once what could not be honoured.
#include "dispatch/dispatcher.hpp"

#include <optional>
#include <utility>

#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace pkcomm::dispatch {
namespace {

using environment::Var;

std::uint64_t hash_of(const Capabilities& capabilities) {
  Hash hash;
  hash.add(static_cast<int>(capabilities.platform));
  hash.add(static_cast<int>(capabilities.multicast));
  hash.add(capabilities.ll_capacity_bytes);
  hash.add(capabilities.slot_bytes);
  hash.add(capabilities.engine_bytes);
  hash.add(capabilities.algorithms);
  return hash.value();
}

// What this build knows: its version and the list of algorithms.
std::uint64_t hash_of_build() {
  Hash hash;
  hash.add(PKCOMM_VERSION);
  for (const Descriptor& d : descriptors()) {
    hash.add_text(d.name);
    hash.add(d.collectives);
  }
  return hash.value();
}

Status overlay_file(Tuning& tuning, const std::string& path, const Topology& topology) {
  PK_ASSIGN(const std::string text, json::read_file(path));
  return tuning.overlay(text, path, topology);
}

}  // namespace

Settings settings_from_environment() {
  Settings settings;
  settings.algorithm = environment::get_if_set<Var::kAlgorithm>().value_or(settings.algorithm);
  settings.mechanism = environment::get_if_set<Var::kMechanism>().value_or(settings.mechanism);
  settings.chunk_bytes = environment::get_if_set<Var::kChunk>().value_or(0);
  settings.tuning_file = environment::get_if_set<Var::kTuning>().value_or("");
  return settings;
}

Capabilities capabilities_of(const Topology& topology) {
  Capabilities capabilities;
  capabilities.platform = topology.platform;
  capabilities.multicast = topology.multicast();
  if (capabilities.multicast) return capabilities;
  if (topology.platform == PlatformKind::kHost) {
    capabilities.multicast_reason = "the host platform has no switch";
  } else {
    capabilities.multicast_reason = topology.multicast_off.empty() ? "a GPU cannot" : topology.multicast_off;
  }
  return capabilities;
}

Result<Dispatcher> Dispatcher::create(const Topology& topology, Capabilities capabilities,
                                      const Settings& settings) {
  Dispatcher dispatcher;
  PK_ASSIGN(dispatcher.tuning_, Tuning::builtin(topology));
  if (!settings.tuning_file.empty()) {
    const Status status = overlay_file(dispatcher.tuning_, settings.tuning_file, topology);
    if (!status.ok()) {
      const std::string line = "PKCOMM_TUNING: " + status.message() + "; using the built-in table";
      log_once(line, LogLevel::kWarn, line);
    }
  }
  dispatcher.overrides_ = Overrides::from_rules(settings.algorithm, settings.mechanism, settings.chunk_bytes);
  dispatcher.capabilities_ = std::move(capabilities);
  Hash hash;
  hash.add(hash_of_build());
  hash.add(dispatcher.tuning_.hash());
  hash.add(dispatcher.overrides_.hash());
  hash.add(hash_of(dispatcher.capabilities_));
  dispatcher.agreement_hash_ = hash.value();
  return dispatcher;
}

Result<Plan> Dispatcher::plan(const Request& request) const {
  if (const std::optional<Plan> recent = recent_->find(request)) return *recent;
  Result<Decision> decision = dispatch::plan(request, capabilities_, tuning_, overrides_);
  if (!decision.ok()) return std::move(decision).status();
  const Decision& made = decision.value();
  if (made.algorithm_ignored) complain(Var::kAlgorithm, request, made.plan);
  if (made.mechanism_ignored) complain(Var::kMechanism, request, made.plan);
  recent_->keep(request, made.plan);
  return made.plan;
}

Explanation Dispatcher::explain(const Request& request) const {
  return dispatch::explain(request, capabilities_, tuning_, overrides_);
}

void Dispatcher::complain(Var var, const Request& request, const Plan& plan) const {
  const auto flag = std::uint32_t{1} << (index(request.collective) * 2 + (var == Var::kMechanism ? 1 : 0));
  if ((complained_->fetch_or(flag, std::memory_order_relaxed) & flag) != 0) return;
  const std::string variable(environment::describe(var).name);
  const std::string collective(name(request.collective));
  log_once(variable + ":" + collective, LogLevel::kWarn,
           variable + " allows nothing that can do " + collective + " of " + format_bytes(request.bytes) +
               " bytes with " + std::to_string(request.nranks) + " ranks; using " +
               std::string(name(plan.algorithm)) + " (said once for each collective)");
}

}  // namespace pkcomm::dispatch
