// What pkcomm-info tells, as values: collected first, then printed as text or JSON. What could not be found out is empty,
// and a sentence says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pkcomm::info {

/// A PKCOMM_* variable as the library reads it.
struct Variable {
  std::string name, value, otherwise, allowed, meaning;
  std::string refused;  // why the environment's value does not hold
  bool from_environment = false;
};

/// A variable that can forbid multicast objects, and what it is set to.
struct Switch {
  std::string name;
  std::optional<std::string> value;
};

/// What the library says of itself.
struct Library {
  std::string version;
  std::string failure;  // why there is no platform; then what follows is empty, but for the variables
  std::string platform;
  std::uint64_t granularity_bytes = 0;
  std::string tuning, tuning_note;
  bool multicast = false;
  std::string multicast_reason;
  std::string multicast_switch;  // NAME=value of the one that decides
  std::vector<Switch> switches;
  std::vector<Variable> variables;
};

struct NumaNode {
  int index = 0;
  int cores = 0;
  std::uint64_t memory_bytes = 0;
};

struct Host {
  std::string failure;  // why hwloc knows nothing
  std::string name, machine, cpu;
  int cores = 0;          // processing units of the machine
  int allowed_cores = 0;  // of these, what control groups leave to this process
  std::vector<NumaNode> numa_nodes;
};

/// A GPU's NVLinks, as NVML reports them.
struct NvLinks {
  int active = 0;
  int version = 0;           // 0: not told
  int mb_per_s = 0;          // of one link in one direction, 1e6 bytes; 0: not told
  int to_switches = 0;       // how many of them end at an NVSwitch
  std::vector<int> to_gpus;  // indices of GPUs at the other ends, one for each such link
};

struct Pcie {
  int generation = 0, width = 0;  // now; a GPU at rest may have slowed down
  int most_generation = 0, most_width = 0;
};

struct Gpu {
  std::string name, uuid, pci, arch;
  int sms = 0;
  int copy_engines = 0;
  std::uint64_t memory_bytes = 0;
  bool posix_handles = false, fabric_handles = false, multicast = false;  // what the driver says it supports
  std::optional<int> numa_node;
  std::optional<NvLinks> nvlinks;
  std::optional<Pcie> pcie;
};

/// One direction between two GPUs.
struct Pair {
  int from = 0, to = 0;
  bool peer_access = false;
  bool native_atomics = false;
  std::string path;  // "nvswitch", "nvlink", "pcie_switch", "host_bridge", "numa_node", "system", "unknown"
};

struct Cuda {
  std::string failure;  // why there are no GPUs
  int version = 0;      // 13000 is 13.0
  std::optional<std::string> visible_devices;
  std::vector<Gpu> gpus;
  std::vector<Pair> pairs;
};

struct Nvml {
  std::string failure;
  std::string driver;
};

struct Facts {
  Library library;
  Host host;
  Cuda cuda;
  Nvml nvml;
};

/// Looks at everything; takes some tenths of a second where there are GPUs.
Facts collect();

}  // namespace pkcomm::info
