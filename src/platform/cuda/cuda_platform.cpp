// Devices of the CUDA platform: which there are, what they can do, which are open.
#include "platform/cuda/cuda_platform.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "platform/cuda/process_platform.hpp"

namespace pkcomm::cuda {
namespace {

Result<int> attribute(const Driver& driver, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  PK_TRY(check(driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute",
               {{"device", device}, {"attribute", static_cast<int>(which)}}));
  return value;
}

Result<DeviceFacts> facts_of(const Driver& driver, CUdevice device, const std::array<std::byte, 16>& uuid) {
  DeviceFacts facts;
  facts.uuid = uuid;
  char text[256] = "";
  PK_TRY(check(driver.cuDeviceGetName(text, sizeof text, device), "cuDeviceGetName", {{"device", device}}));
  facts.name = text;
  PK_TRY(check(driver.cuDeviceGetPCIBusId(text, sizeof text, device), "cuDeviceGetPCIBusId",
               {{"device", device}}));
  facts.pci_bus_id = text;
  PK_ASSIGN(const int major, attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  PK_ASSIGN(const int minor, attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  facts.arch = "sm_" + std::to_string(major) + std::to_string(minor);
  PK_ASSIGN(facts.sms, attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  // A fact of the device; asking for it touches no multicast object.
  PK_ASSIGN(const int multicast, attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED));
  facts.multicast_capable = multicast != 0;
  facts.driver_version = driver.version;
  return facts;
}

/// What memory is shared by here.
Status check_memory_management(const Driver& driver, CUdevice device) {
  const struct {
    CUdevice_attribute which;
    const char* what;
  } needs[] = {
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory management"},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "memory as file descriptors"},
  };
  for (const auto& need : needs) {
    PK_ASSIGN(const int value, attribute(driver, device, need.which));
    if (value == 0) {
      return Status(pkcommUnsupported, "device " + std::to_string(device) + " has no " + need.what);
    }
  }
  return {};
}

}  // namespace

Result<CudaPlatform*> CudaPlatform::instance() {
  static std::atomic<CudaPlatform*> current{nullptr};
  PK_ASSIGN(const Driver* const driver, cuda::driver());
  CudaPlatform* existing = current.load(std::memory_order_acquire);
  if (existing != nullptr && &existing->driver_ == driver) return existing;
  // Two threads may both come here: nothing is open yet, and the first platform holds.
  PK_ASSIGN(std::unique_ptr<CudaPlatform> fresh, create(*driver));
  if (!current.compare_exchange_strong(existing, fresh.get(), std::memory_order_acq_rel)) return existing;
  return fresh.release();
}

Result<Platform*> process_platform() {
  PK_ASSIGN(Platform* const platform, CudaPlatform::instance());
  return platform;
}

Result<std::unique_ptr<CudaPlatform>> CudaPlatform::create(const Driver& driver) {
  std::unique_ptr<CudaPlatform> platform(new CudaPlatform(driver));
  PK_TRY(platform->look_at_devices());
  return platform;
}

Status CudaPlatform::look_at_devices() {
  int count = 0;
  PK_TRY(check(driver_.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0) return Status(pkcommUnsupported, "no CUDA device is visible (CUDA_VISIBLE_DEVICES)");
  for (int device = 0; device < count; ++device) {
    auto slot = std::make_unique<Slot>();
    PK_TRY(check(driver_.cuDeviceGet(&slot->handle, device), "cuDeviceGet", {{"device", device}}));
    CUuuid uuid{};
    PK_TRY(check(driver_.cuDeviceGetUuid(&uuid, slot->handle), "cuDeviceGetUuid", {{"device", device}}));
    static_assert(sizeof uuid.bytes == sizeof slot->uuid);
    std::memcpy(slot->uuid.data(), uuid.bytes, sizeof uuid.bytes);
    PK_ASSIGN(const std::size_t granularity, granularity_of(*slot));
    granularity_ = std::max(granularity_, granularity);
    slots_.push_back(std::move(slot));
  }
  return {};
}

Result<CudaPlatform::Slot*> CudaPlatform::slot(int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= slots_.size()) {
    return Status(pkcommInvalidArgument, "device is " + std::to_string(device) + "; allowed: 0.." +
                                             std::to_string(slots_.size() - 1));
  }
  return slots_[static_cast<std::size_t>(device)].get();
}

Result<int> CudaPlatform::current_device() {
  CUcontext context = nullptr;
  PK_TRY(check(driver_.cuCtxGetCurrent(&context), "cuCtxGetCurrent"));
  if (context == nullptr) return 0;  // what cudaGetDevice says then
  CUdevice handle = 0;
  PK_TRY(check(driver_.cuCtxGetDevice(&handle), "cuCtxGetDevice"));
  for (std::size_t device = 0; device < slots_.size(); ++device) {
    if (slots_[device]->handle == handle) return static_cast<int>(device);
  }
  return Status(pkcommInternalError, "cuCtxGetDevice: device " + std::to_string(handle) + " is not one of " +
                                         std::to_string(slots_.size()));
}

Result<DeviceFacts> CudaPlatform::open_device(int device) {
  PK_ASSIGN(Slot* const slot, this->slot(device));
  const std::lock_guard lock(slot->mutex);
  if (slot->device == nullptr) {
    PK_TRY(check_memory_management(driver_, slot->handle));
    PK_ASSIGN(const int fabric,
              attribute(driver_, slot->handle, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED));
    slot->fabric_handles = fabric != 0;
    PK_ASSIGN(slot->device, Device::open(driver_, slot->handle));
  }
  return facts_of(driver_, slot->handle, slot->uuid);
}

Result<Device*> CudaPlatform::opened(int device) {
  PK_ASSIGN(Slot* const slot, this->slot(device));
  const std::lock_guard lock(slot->mutex);
  if (slot->device == nullptr) {
    return Status(pkcommInternalError, "device " + std::to_string(device) + " is used before it is opened");
  }
  return slot->device.get();
}

Status CudaPlatform::check_peer(int device, const DeviceFacts& peer) {
  PK_ASSIGN(const Slot* const own, slot(device));
  if (peer.uuid == own->uuid) return {};
  const auto other = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const auto& candidate) { return candidate->uuid == peer.uuid; });
  if (other == slots_.end()) return {};  // another process's device, hidden from this one
  int can = 0;
  PK_TRY(check(driver_.cuDeviceCanAccessPeer(&can, own->handle, (*other)->handle), "cuDeviceCanAccessPeer",
               {{"device", own->handle}, {"peer", (*other)->handle}}));
  if (can != 0) return {};
  return Status(pkcommUnsupported, "device " + std::to_string(device) + " cannot map the memory of device " +
                                       std::to_string((*other)->handle) + " (" + peer.name + ", " +
                                       peer.pci_bus_id + "): no NVLink and no PCIe peer access between them");
}

Status CudaPlatform::clear(int device, std::byte* at, std::size_t bytes) {
  PK_ASSIGN(Device* const opened, this->opened(device));
  return opened->clear(at, bytes);
}

Status CudaPlatform::read(int device, void* to, const std::byte* from, std::size_t bytes) {
  PK_ASSIGN(Device* const opened, this->opened(device));
  return opened->read(to, from, bytes);
}

Status CudaPlatform::write(int device, std::byte* to, const void* from, std::size_t bytes) {
  PK_ASSIGN(Device* const opened, this->opened(device));
  return opened->write(to, from, bytes);
}

}  // namespace pkcomm::cuda
