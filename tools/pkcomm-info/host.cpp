// By hwloc, which this file alone includes.
#include "host.hpp"

#include <hwloc.h>
#include <unistd.h>

namespace pkcomm::info {

namespace {

std::string info_of(hwloc_obj_t object, const char* key) {
  const char* const value = object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, key);
  return value == nullptr ? std::string() : std::string(value);
}

std::optional<int> node_of(hwloc_topology_t machine, const std::string& pci) {
  const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(machine, pci.c_str());
  if (device == nullptr) return std::nullopt;
  const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(machine, device);
  if (near == nullptr || near->nodeset == nullptr) return std::nullopt;
  // Several nodes: the slot is near none of them more than another.
  if (hwloc_bitmap_weight(near->nodeset) != 1) return std::nullopt;
  return hwloc_bitmap_first(near->nodeset);
}

void look(hwloc_topology_t machine, Host& host, std::vector<Gpu>& gpus) {
  const hwloc_obj_t root = hwloc_get_root_obj(machine);
  host.machine = info_of(root, "DMIProductName");
  const hwloc_obj_t package = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PACKAGE, 0);
  host.cpu = info_of(package == nullptr ? root : package, "CPUModel");
  host.cores = hwloc_bitmap_weight(hwloc_topology_get_complete_cpuset(machine));
  host.allowed_cores = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(machine));
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    host.numa_nodes.push_back({.index = static_cast<int>(node->os_index),
                               .cores = hwloc_bitmap_weight(node->cpuset),
                               .memory_bytes = node->attr->numanode.local_memory});
  }
  for (Gpu& gpu : gpus) gpu.numa_node = node_of(machine, gpu.pci);
}

}  // namespace

Host ask_hwloc(std::vector<Gpu>& gpus) {
  Host host;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) host.name = name;
  hwloc_topology_t machine = nullptr;
  if (hwloc_topology_init(&machine) != 0) {
    host.failure = "hwloc cannot start";
    return host;
  }
  hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // Whatever is not disallowed for this process is counted apart; hwloc leaves it out otherwise.
  hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(machine) == 0) {
    look(machine, host, gpus);
  } else {
    host.failure = "hwloc cannot read this machine";
  }
  hwloc_topology_destroy(machine);
  return host;
}

}  // namespace pkcomm::info
