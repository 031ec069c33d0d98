// The driver's functions by dlopen; the few declarations are this program's own. Whether a GPU supports multicast objects
// is an attribute that every driver answers from what it knows; nothing of multicast itself is called.
#include "gpus.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "dynamic_library.hpp"

namespace pkcomm::info {

namespace {

// Values of CUdevice_attribute and CUdevice_P2PAttribute.
constexpr int kMultiprocessors = 16, kAsyncEngines = 40, kMajor = 75, kMinor = 76, kPosixHandles = 103,
              kFabricHandles = 128, kMulticast = 132;
constexpr int kNativeAtomics = 3;

struct Uuid {
  unsigned char bytes[16];
};

struct Driver {
  DynamicLibrary library{"libcuda.so.1"};
  int (*init)(unsigned flags);
  int (*error_string)(int error, const char** text);
  int (*driver_version)(int* version);
  int (*device_count)(int* count);
  int (*device)(int* device, int index);
  int (*name)(char* name, int bytes, int device);
  int (*uuid)(Uuid* uuid, int device);
  int (*memory)(std::size_t* bytes, int device);
  int (*attribute)(int* value, int attribute, int device);
  int (*pci)(char* id, int bytes, int device);
  int (*can_access_peer)(int* can, int device, int peer);
  int (*pair_attribute)(int* value, int attribute, int device, int peer);

  Driver() {
    library.need(init, "cuInit");
    library.need(error_string, "cuGetErrorString");
    library.need(driver_version, "cuDriverGetVersion");
    library.need(device_count, "cuDeviceGetCount");
    library.need(device, "cuDeviceGet");
    library.need(name, "cuDeviceGetName");
    // The older one gives the whole GPU's where a slice of it (MIG) is meant.
    if (!library.find(uuid, "cuDeviceGetUuid_v2")) library.need(uuid, "cuDeviceGetUuid");
    library.need(memory, "cuDeviceTotalMem_v2");
    library.need(attribute, "cuDeviceGetAttribute");
    library.need(pci, "cuDeviceGetPCIBusId");
    library.need(can_access_peer, "cuDeviceCanAccessPeer");
    library.need(pair_attribute, "cuDeviceGetP2PAttribute");
  }

  std::string words(const char* call, int error) const {
    const char* text = nullptr;
    error_string(error, &text);
    return std::string(call) + ": " + (text == nullptr ? "error " + std::to_string(error) : text);
  }
  /// 0 for what this driver does not know.
  int value(int which, int of) const {
    int value = 0;
    return attribute(&value, which, of) == 0 ? value : 0;
  }
};

std::string to_text(const Uuid& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    std::snprintf(byte, sizeof byte, "%s%02x", dash ? "-" : "", uuid.bytes[i]);
    text += byte;
  }
  return text;
}

Gpu describe(const Driver& driver, int device) {
  Gpu gpu;
  char text[256] = {};
  if (driver.name(text, sizeof text, device) == 0) gpu.name = text;
  if (driver.pci(text, sizeof text, device) == 0) gpu.pci = text;
  Uuid uuid{};
  if (driver.uuid(&uuid, device) == 0) gpu.uuid = to_text(uuid);
  std::size_t bytes = 0;
  if (driver.memory(&bytes, device) == 0) gpu.memory_bytes = bytes;
  gpu.arch =
      "sm_" + std::to_string(driver.value(kMajor, device)) + std::to_string(driver.value(kMinor, device));
  gpu.sms = driver.value(kMultiprocessors, device);
  gpu.copy_engines = driver.value(kAsyncEngines, device);
  gpu.posix_handles = driver.value(kPosixHandles, device) != 0;
  gpu.fabric_handles = driver.value(kFabricHandles, device) != 0;
  gpu.multicast = driver.value(kMulticast, device) != 0;
  return gpu;
}

}  // namespace

Cuda ask_cuda() {
  Cuda cuda;
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) cuda.visible_devices = visible;
  const Driver driver;
  cuda.failure = driver.library.failure();
  if (!cuda.failure.empty()) return cuda;
  driver.driver_version(&cuda.version);
  if (const int error = driver.init(0); error != 0) {
    cuda.failure = driver.words("cuInit", error);
    return cuda;
  }
  int count = 0;
  if (const int error = driver.device_count(&count); error != 0) {
    cuda.failure = driver.words("cuDeviceGetCount", error);
    return cuda;
  }
  if (count == 0) cuda.failure = "the driver names no GPU";
  std::vector<int> devices(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    int& device = devices[static_cast<std::size_t>(i)];
    if (const int error = driver.device(&device, i); error != 0) {
      cuda.failure = driver.words("cuDeviceGet", error);
      return cuda;
    }
    cuda.gpus.push_back(describe(driver, device));
  }
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      const int device = devices[static_cast<std::size_t>(from)],
                peer = devices[static_cast<std::size_t>(to)];
      int access = 0, atomics = 0;
      driver.can_access_peer(&access, device, peer);
      driver.pair_attribute(&atomics, kNativeAtomics, device, peer);
      cuda.pairs.push_back({from, to, access != 0, atomics != 0, "unknown"});
    }
  }
  return cuda;
}

}  // namespace pkcomm::info
