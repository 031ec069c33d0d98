// Placement by hwloc. Binding asks for the nearest, never insists: a full node must not fail an allocation.
#include "topology/placement.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include "base/log.hpp"
#include "topology/hwloc_machine.hpp"

namespace pkcomm::topology {
namespace {

// -1: hwloc does not work here.
int node_count() {
  static const int count =
      hwloc_machine() == nullptr ? -1 : hwloc_get_nbobjs_by_type(hwloc_machine(), HWLOC_OBJ_NUMANODE);
  return count;
}

Result<hwloc_obj_t> node_object(int node) {
  if (node < 0 || node >= numa_nodes()) {
    return Status(pkcommInvalidArgument,
                  "NUMA node " + std::to_string(node) + ", allowed 0.." + std::to_string(numa_nodes() - 1));
  }
  return hwloc_get_obj_by_type(hwloc_machine(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(node));
}

void note_refusal(const char* call) {
  const std::string line =
      std::string(call) + ": " + std::strerror(errno) + "; placement is left to the system";
  log_once(call, LogLevel::kInfo, line);
}

/// A CPU set of its own, freed at the end of the scope.
class Bitmap {
 public:
  Bitmap() : set_(hwloc_bitmap_alloc()) {}
  Bitmap(const Bitmap&) = delete;
  Bitmap& operator=(const Bitmap&) = delete;
  ~Bitmap() { hwloc_bitmap_free(set_); }
  hwloc_bitmap_t get() const noexcept { return set_; }

 private:
  hwloc_bitmap_t set_;
};

}  // namespace

int numa_nodes() { return node_count() > 1 ? node_count() : 1; }

int numa_node_of_this_thread() {
  if (numa_nodes() == 1) return 0;
  const hwloc_topology_t machine = hwloc_machine();
  const Bitmap here;
  if (here.get() == nullptr || hwloc_get_last_cpu_location(machine, here.get(), HWLOC_CPUBIND_THREAD) != 0)
    return 0;
  for (int i = 0; i < numa_nodes(); ++i) {
    const hwloc_obj_t node = hwloc_get_obj_by_type(machine, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    if (hwloc_bitmap_intersects(here.get(), node->cpuset)) return i;
  }
  return 0;
}

Status bind_memory_near(void* memory, std::size_t bytes, int node) {
  PK_ASSIGN(const hwloc_obj_t object, node_object(node));
  if (numa_nodes() == 1 || bytes == 0) return {};
  if (hwloc_set_area_membind(hwloc_machine(), memory, bytes, object->nodeset, HWLOC_MEMBIND_BIND,
                             HWLOC_MEMBIND_BYNODESET) != 0) {
    note_refusal("hwloc_set_area_membind");
  }
  return {};
}

Status bind_worker_near(int node) {
  PK_ASSIGN(const hwloc_obj_t object, node_object(node));
  if (numa_nodes() == 1) return {};
  // Within what the user left to the process: taskset and launchers narrow it, and a worker must not break out.
  const Bitmap cores;
  if (cores.get() == nullptr) return {};
  if (hwloc_get_cpubind(hwloc_machine(), cores.get(), HWLOC_CPUBIND_THREAD) != 0) {
    note_refusal("hwloc_get_cpubind");
    return {};
  }
  hwloc_bitmap_and(cores.get(), cores.get(), object->cpuset);
  if (hwloc_bitmap_iszero(cores.get())) return {};
  if (hwloc_set_cpubind(hwloc_machine(), cores.get(), HWLOC_CPUBIND_THREAD) != 0)
    note_refusal("hwloc_set_cpubind");
  return {};
}

}  // namespace pkcomm::topology
