// Finds out about this machine by hwloc.
#include <algorithm>

#include "base/log.hpp"
#include "topology/hwloc_machine.hpp"
#include "topology/topology.hpp"

namespace pkcomm::topology {
namespace {

// Neither devices nor caches are wanted: they cost most of the time.
hwloc_topology_t load_machine() {
  hwloc_topology_t machine = nullptr;
  if (hwloc_topology_init(&machine) != 0) return nullptr;
  hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(machine, HWLOC_OBJ_PACKAGE,
                                 HWLOC_TYPE_FILTER_KEEP_ALL);  // has the model's name
#if HWLOC_API_VERSION >= 0x00020100
  // This part of hwloc moves the calling thread from core to core to ask each one; the kernel's files say enough.
  hwloc_topology_set_components(machine, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#endif
  if (hwloc_topology_load(machine) != 0) {
    hwloc_topology_destroy(machine);
    log(LogLevel::kWarn, "hwloc cannot read this machine; it counts as one NUMA node");
    return nullptr;
  }
  return machine;
}

std::string info(hwloc_obj_t object, const char* key) {
  const char* value = hwloc_obj_get_info_by_name(object, key);
  return value == nullptr ? std::string() : std::string(value);
}

Topology look() {
  Topology topology;
  topology.platform = PlatformKind::kHost;
  const hwloc_topology_t machine = hwloc_machine();
  if (machine == nullptr) {
    topology.numa_nodes.emplace_back();
    return topology;
  }
  const hwloc_obj_t root = hwloc_get_root_obj(machine);
  topology.machine = info(root, "DMIProductName");
  const hwloc_obj_t package = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PACKAGE, 0);
  topology.cpu = info(package == nullptr ? root : package, "CPUModel");
  // Processing units: ranks that spin on two threads of one core still run at once. Control groups count; affinity does
  // not, because ranks differ in it.
  topology.cores = std::max(1, hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(machine)));
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    topology.numa_nodes.push_back({.cores = std::max(0, hwloc_bitmap_weight(node->cpuset)),
                                   .memory_bytes = node->attr->numanode.local_memory});
  }
  return topology;
}

}  // namespace

hwloc_topology_t hwloc_machine() {
  static const hwloc_topology_t machine = load_machine();
  return machine;
}

const Topology& detect_host() {
  static const Topology topology = look();
  return topology;
}

}  // namespace pkcomm::topology
