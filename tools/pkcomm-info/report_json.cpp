// JSON, by the one file that includes its writer.
#include <nlohmann/json.hpp>

#include "report.hpp"

namespace pkcomm::info {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const Library& library) {
  return {{"version", library.version},
          {"platform", or_null(library.platform)},
          {"platform_error", or_null(library.failure)},
          {"granularity_bytes", library.granularity_bytes},
          {"tuning", or_null(library.tuning)},
          {"tuning_note", or_null(library.tuning_note)}};
}

Json multicast(const Library& library) {
  Json switches = Json::object();
  for (const Switch& one : library.switches) switches[one.name] = or_null(one.value);
  return {{"used", library.multicast},
          {"reason", or_null(library.multicast_reason)},
          {"switch", or_null(library.multicast_switch)},
          {"switches", std::move(switches)}};
}

Json to_json(const Host& host) {
  Json nodes = Json::array();
  for (const NumaNode& node : host.numa_nodes) {
    nodes.push_back({{"index", node.index}, {"cores", node.cores}, {"memory_bytes", node.memory_bytes}});
  }
  return {{"error", or_null(host.failure)}, {"name", host.name},   {"machine", or_null(host.machine)},
          {"cpu", or_null(host.cpu)},       {"cores", host.cores}, {"allowed_cores", host.allowed_cores},
          {"numa_nodes", std::move(nodes)}};
}

Json to_json(const Gpu& gpu) {
  Json nvlinks, pcie;
  if (gpu.nvlinks) {
    nvlinks = {{"active", gpu.nvlinks->active},
               {"version", gpu.nvlinks->version},
               {"mb_per_s", gpu.nvlinks->mb_per_s},
               {"to_switches", gpu.nvlinks->to_switches},
               {"to_gpus", gpu.nvlinks->to_gpus}};
  }
  if (gpu.pcie) {
    pcie = {{"generation", gpu.pcie->generation},
            {"width", gpu.pcie->width},
            {"most_generation", gpu.pcie->most_generation},
            {"most_width", gpu.pcie->most_width}};
  }
  return {{"name", gpu.name},
          {"uuid", gpu.uuid},
          {"pci", gpu.pci},
          {"arch", gpu.arch},
          {"sms", gpu.sms},
          {"copy_engines", gpu.copy_engines},
          {"memory_bytes", gpu.memory_bytes},
          {"posix_handles", gpu.posix_handles},
          {"fabric_handles", gpu.fabric_handles},
          {"multicast_supported", gpu.multicast},
          {"numa_node", or_null(gpu.numa_node)},
          {"nvlinks", std::move(nvlinks)},
          {"pcie", std::move(pcie)}};
}

Json to_json(const Variable& variable) {
  return {{"name", variable.name},
          {"value", or_null(variable.value)},
          {"origin", variable.from_environment ? "environment" : "default"},
          {"default", or_null(variable.otherwise)},
          {"allowed", variable.allowed},
          {"meaning", variable.meaning},
          {"refused", or_null(variable.refused)}};
}

}  // namespace

std::string to_json(const Facts& facts) {
  Json gpus = Json::array(), pairs = Json::array(), variables = Json::array();
  for (const Gpu& gpu : facts.cuda.gpus) gpus.push_back(to_json(gpu));
  for (const Pair& pair : facts.cuda.pairs) {
    pairs.push_back({{"from", pair.from},
                     {"to", pair.to},
                     {"path", pair.path},
                     {"peer_access", pair.peer_access},
                     {"native_atomics", pair.native_atomics}});
  }
  for (const Variable& variable : facts.library.variables) variables.push_back(to_json(variable));
  Json cuda = {{"error", or_null(facts.cuda.failure)},
               {"version", facts.cuda.version},
               {"visible_devices", or_null(facts.cuda.visible_devices)}};
  Json nvml = {{"error", or_null(facts.nvml.failure)}, {"driver", or_null(facts.nvml.driver)}};
  const Json document = {{"schema", kSchema},
                         {"pkcomm", to_json(facts.library)},
                         {"multicast", multicast(facts.library)},
                         {"host", to_json(facts.host)},
                         {"cuda", std::move(cuda)},
                         {"nvml", std::move(nvml)},
                         {"gpus", std::move(gpus)},
                         {"pairs", std::move(pairs)},
                         {"variables", std::move(variables)}};
  // Names may hold bytes that are no UTF-8: replaced, as JSON knows nothing else.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pkcomm::info
