// Recorded machines: the JSON that tests/fixtures/topologies shows, read strictly.
#include "topology/topology.hpp"

#include <algorithm>

#include "base/json.hpp"

namespace pkcomm {

bool Topology::multicast() const noexcept {
  const auto can = [](const topology::Gpu& gpu) { return gpu.multicast; };
  return multicast_off.empty() && !gpus.empty() && std::all_of(gpus.begin(), gpus.end(), can);
}

namespace topology {
namespace {

constexpr int kSchema = 1;
// Generous bounds: they keep sums of a wrong file within their types, nothing else.
constexpr int kMaxCores = 1 << 20;
constexpr int kMaxGpus = 4096;
constexpr std::int64_t kMaxMemoryBytes = std::int64_t{1} << 60;
constexpr int kMaxLinkMbPerS = 100'000'000;

Result<PlatformKind> parse_platform(const json::Value& root) {
  PK_ASSIGN(const json::Value* value, root.member("platform"));
  PK_ASSIGN(const std::string text, value->text());
  if (text == name(PlatformKind::kHost)) return PlatformKind::kHost;
  if (text == name(PlatformKind::kCuda)) return PlatformKind::kCuda;
  return value->refuse("allowed \"host\", \"cuda\"");
}

Result<int> bounded(const json::Value& object, std::string_view key, int fallback, int least, int most) {
  PK_ASSIGN(const std::int64_t value, object.integer_or(key, fallback, least, most));
  return static_cast<int>(value);
}

Result<NumaNode> parse_node(const json::Value& value) {
  PK_TRY(value.only({"cores", "memory_bytes"}));
  NumaNode node;
  PK_ASSIGN(node.cores, bounded(value, "cores", 0, 0, kMaxCores));
  PK_ASSIGN(const std::int64_t bytes, value.integer_or("memory_bytes", 0, 0, kMaxMemoryBytes));
  node.memory_bytes = static_cast<std::uint64_t>(bytes);
  return node;
}

// An entry stands for `count` equal GPUs.
Status parse_gpus(const json::Value& value, std::vector<Gpu>& gpus) {
  PK_TRY(value.only({"count", "name", "arch", "sms", "links", "link_mb_per_s", "multicast"}));
  Gpu gpu;
  PK_ASSIGN(const int count, bounded(value, "count", 1, 1, kMaxGpus));
  PK_ASSIGN(const json::Value* gpu_name, value.member("name"));
  PK_ASSIGN(gpu.name, gpu_name->text());
  PK_ASSIGN(gpu.arch, value.text_or("arch", ""));
  PK_ASSIGN(gpu.sms, bounded(value, "sms", 0, 0, kMaxCores));
  PK_ASSIGN(gpu.links, bounded(value, "links", 0, 0, kMaxGpus));
  PK_ASSIGN(gpu.link_mb_per_s, bounded(value, "link_mb_per_s", 0, 0, kMaxLinkMbPerS));
  PK_ASSIGN(gpu.multicast, value.boolean_or("multicast", false));
  if (gpus.size() + static_cast<std::size_t>(count) > kMaxGpus) {
    return value.refuse("with it there are more than " + std::to_string(kMaxGpus) + " GPUs");
  }
  gpus.insert(gpus.end(), static_cast<std::size_t>(count), gpu);
  return {};
}

Result<Topology> build(const json::Value& root) {
  PK_TRY(root.only({"schema", "platform", "machine", "cpu", "cores", "numa_nodes", "gpus", "nvlink_domain",
                    "multicast_off"}));
  PK_ASSIGN(const json::Value* schema, root.member("schema"));
  PK_TRY(schema->integer(kSchema, kSchema).status());
  Topology topology;
  PK_ASSIGN(topology.platform, parse_platform(root));
  PK_ASSIGN(topology.machine, root.text_or("machine", ""));
  PK_ASSIGN(topology.cpu, root.text_or("cpu", ""));
  PK_ASSIGN(topology.cores, bounded(root, "cores", 1, 1, kMaxCores));
  PK_ASSIGN(topology.nvlink_domain, root.text_or("nvlink_domain", ""));
  PK_ASSIGN(topology.multicast_off, root.text_or("multicast_off", ""));
  if (const json::Value* nodes = root.find("numa_nodes")) {
    PK_ASSIGN(const auto items, nodes->items());
    for (const json::Value& item : items) {
      PK_ASSIGN(const NumaNode node, parse_node(item));
      topology.numa_nodes.push_back(node);
    }
  }
  if (const json::Value* gpus = root.find("gpus")) {
    PK_ASSIGN(const auto items, gpus->items());
    for (const json::Value& item : items) PK_TRY(parse_gpus(item, topology.gpus));
  }
  if (topology.platform == PlatformKind::kCuda && topology.gpus.empty()) {
    return Status(pkcommInvalidArgument, root.where() + ": platform \"cuda\" without \"gpus\"");
  }
  return topology;
}

}  // namespace

Result<Topology> parse(std::string_view text, std::string_view source) {
  PK_ASSIGN(const json::Value root, json::parse(text, source));
  return build(root);
}

Result<Topology> load(const std::string& path) {
  PK_ASSIGN(const json::Value root, json::load(path));
  return build(root);
}

}  // namespace topology
}  // namespace pkcomm
