// NVML's functions by dlopen; the few declarations are this program's own. GPUs are found by uuid, since the order of
// NVML's indices is not CUDA's. In a virtual machine the far ends of links may be hidden: then only their number is told.
#include "links.hpp"

#include <cstring>

#include "dynamic_library.hpp"

namespace pkcomm::info {

namespace {

using Device = struct OpaqueDevice*;

constexpr unsigned kMostLinks = 18;
constexpr int kRemoteGpu = 0, kRemoteSwitch = 2;  // nvmlIntNvLinkDeviceType_t
constexpr int kByNvLink = 2, kStatusOk = 0;       // nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t
constexpr unsigned kFieldLinkSpeed = 90;          // of all active links, in MB/s

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  int result;
  union {
    unsigned number;
    unsigned long long all;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

struct PciInfo {
  char short_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Functions {
  DynamicLibrary library{"libnvidia-ml.so.1"};
  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int error);
  int (*driver_version)(char* text, unsigned bytes);
  int (*by_uuid)(const char* uuid, Device* device);
  int (*pci)(Device, PciInfo*);
  int (*link_state)(Device, unsigned link, int* active);
  int (*link_version)(Device, unsigned link, unsigned* version);
  int (*link_remote_type)(Device, unsigned link, int* type);
  int (*link_remote_pci)(Device, unsigned link, PciInfo*);
  int (*fields)(Device, int count, FieldValue*);
  int (*pair_status)(Device, Device, int index, int* status);
  int (*common_ancestor)(Device, Device, int* level);
  int (*pcie_generation)(Device, unsigned*);
  int (*pcie_width)(Device, unsigned*);
  int (*most_pcie_generation)(Device, unsigned*);
  int (*most_pcie_width)(Device, unsigned*);

  Functions() {
    library.need(init, "nvmlInit_v2");
    library.need(shutdown, "nvmlShutdown");
    library.need(error_string, "nvmlErrorString");
    library.need(driver_version, "nvmlSystemGetDriverVersion");
    library.need(by_uuid, "nvmlDeviceGetHandleByUUID");
    library.need(pci, "nvmlDeviceGetPciInfo_v3");
    library.need(link_state, "nvmlDeviceGetNvLinkState");
    library.need(link_version, "nvmlDeviceGetNvLinkVersion");
    library.need(link_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    library.need(fields, "nvmlDeviceGetFieldValues");
    library.need(pair_status, "nvmlDeviceGetP2PStatus");
    library.need(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
    library.need(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
    library.need(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
    library.need(most_pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    library.need(most_pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
    library.find(link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  }
};

// NVML writes the domain with 8 digits where CUDA writes 4.
bool same_slot(const PciInfo& one, const PciInfo& other) {
  return one.domain == other.domain && one.bus == other.bus && one.device == other.device;
}

NvLinks links_of(const Functions& nvml, const std::vector<Device>& devices, Device device) {
  NvLinks links;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    int active = 0;
    if (nvml.link_state(device, link, &active) != 0 || active == 0) continue;
    ++links.active;
    unsigned version = 0;
    if (nvml.link_version(device, link, &version) == 0) links.version = static_cast<int>(version);
    int type = -1;
    if (nvml.link_remote_type == nullptr || nvml.link_remote_type(device, link, &type) != 0) continue;
    if (type == kRemoteSwitch) ++links.to_switches;
    PciInfo far{};
    if (type != kRemoteGpu || nvml.link_remote_pci(device, link, &far) != 0) continue;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      PciInfo own{};
      if (devices[i] != nullptr && nvml.pci(devices[i], &own) == 0 && same_slot(own, far)) {
        links.to_gpus.push_back(static_cast<int>(i));
      }
    }
  }
  FieldValue speed{};
  speed.field = kFieldLinkSpeed;
  if (nvml.fields(device, 1, &speed) == 0 && speed.result == 0) {
    links.mb_per_s = static_cast<int>(speed.value.number);
  }
  return links;
}

std::optional<Pcie> pcie_of(const Functions& nvml, Device device) {
  unsigned generation = 0, width = 0, most_generation = 0, most_width = 0;
  if (nvml.pcie_generation(device, &generation) != 0 || nvml.pcie_width(device, &width) != 0)
    return std::nullopt;
  nvml.most_pcie_generation(device, &most_generation);
  nvml.most_pcie_width(device, &most_width);
  return Pcie{static_cast<int>(generation), static_cast<int>(width), static_cast<int>(most_generation),
              static_cast<int>(most_width)};
}

const char* path_between(const Functions& nvml, const std::optional<NvLinks>& links, Device from, Device to) {
  int status = -1;
  if (nvml.pair_status(from, to, kByNvLink, &status) == 0 && status == kStatusOk) {
    return links && links->to_switches > 0 ? "nvswitch" : "nvlink";
  }
  int level = -1;
  if (nvml.common_ancestor(from, to, &level) != 0) return "unknown";
  switch (level) {  // nvmlGpuTopologyLevel_t
    case 0:
    case 10:
    case 20:
      return "pcie_switch";
    case 30:
      return "host_bridge";
    case 40:
      return "numa_node";
    case 50:
      return "system";
  }
  return "unknown";
}

}  // namespace

Nvml ask_nvml(Cuda& cuda) {
  Nvml answer;
  const Functions nvml;
  answer.failure = nvml.library.failure();
  if (!answer.failure.empty()) return answer;
  if (const int error = nvml.init(); error != 0) {
    answer.failure = std::string("nvmlInit: ") + nvml.error_string(error);
    return answer;
  }
  char version[96] = {};
  if (nvml.driver_version(version, sizeof version) == 0) answer.driver = version;
  std::vector<Device> devices(cuda.gpus.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (nvml.by_uuid(cuda.gpus[i].uuid.c_str(), &devices[i]) != 0) devices[i] = nullptr;
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == nullptr) continue;
    cuda.gpus[i].nvlinks = links_of(nvml, devices, devices[i]);
    cuda.gpus[i].pcie = pcie_of(nvml, devices[i]);
  }
  for (Pair& pair : cuda.pairs) {
    const auto from = static_cast<std::size_t>(pair.from), to = static_cast<std::size_t>(pair.to);
    if (devices[from] == nullptr || devices[to] == nullptr) continue;
    pair.path = path_between(nvml, cuda.gpus[from].nvlinks, devices[from], devices[to]);
  }
  nvml.shutdown();
  return answer;
}

}  // namespace pkcomm::info
