// Requests checked, and a dispatcher made for the occasion.
#include "comm/explain.hpp"

#include "base/environment.hpp"
#include "collectives/descriptors.hpp"
#include "dispatch/dispatcher.hpp"
#include "numerics/dispatch_type.hpp"
#include "protocol/layout.hpp"
#include "topology/topology.hpp"

namespace pkcomm {
namespace {

Status not_allowed(const char* field, std::int64_t value, const char* allowed) {
  return Status(pkcommInvalidArgument,
                std::string("request.") + field + " is " + std::to_string(value) + "; allowed: " + allowed);
}

}  // namespace

Status validate_explain_request(const pkcommExplainRequest_t& request, bool needs_nranks) {
  if (request.size != sizeof request) {
    return not_allowed("size", static_cast<std::int64_t>(request.size),
                       "that of PKCOMM_EXPLAIN_REQUEST_INITIALIZER");
  }
  if (request.collective < 0 || request.collective >= PKCOMM_COLLECTIVES) {
    return not_allowed("collective", request.collective, "the values of pkcommCollective_t");
  }
  const std::size_t element = numerics::element_size(request.dtype);
  if (element == 0) return not_allowed("dtype", request.dtype, "the values of pkcommDataType_t");
  if (request.op < 0) return not_allowed("op", request.op, "the values of pkcommRedOp_t");
  if (needs_nranks && (request.nranks < 1 || request.nranks > static_cast<int>(kMaxRanks))) {
    return not_allowed("nranks", request.nranks, "1..1024");
  }
  if (request.count > INT64_MAX / element / kMaxRanks) {
    return not_allowed("count", static_cast<std::int64_t>(request.count),
                       "less than 2^63 bytes for 1024 ranks");
  }
  return {};
}

Result<dispatch::Explanation> explain_machine(const pkcommExplainRequest_t& request) {
  Topology machine = topology::detect_host();
  if (request.topology != nullptr) {
    PK_ASSIGN(machine, topology::load(request.topology));
  }
  dispatch::Capabilities capabilities = dispatch::capabilities_of(machine);
  const Layout layout = Layout::make(request.nranks, environment::get<environment::Var::kStaging>());
  capabilities.ll_capacity_bytes = layout.ll_capacity;
  capabilities.slot_bytes = layout.slot_bytes;
  capabilities.engine_bytes = layout.engine_bytes;
  PK_ASSIGN(const auto dispatcher,
            dispatch::Dispatcher::create(machine, capabilities, dispatch::settings_from_environment()));
  dispatch::Request asked;
  asked.collective = static_cast<Collective>(request.collective);
  asked.bytes = request.count * numerics::element_size(request.dtype);
  if (sized_by_blocks(asked.collective)) asked.bytes *= static_cast<std::size_t>(request.nranks);
  asked.dtype = request.dtype;
  asked.kind = numerics::reduce_kind(request.op);
  asked.nranks = request.nranks;
  asked.send_window = request.send_window != 0;
  asked.recv_window = request.recv_window != 0;
  return dispatcher.explain(asked);
}

}  // namespace pkcomm
