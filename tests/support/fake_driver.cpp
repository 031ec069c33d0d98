// The fake driver's installation, its look-ups, its devices and contexts.
#include "support/fake_driver.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "platform/cuda/driver.hpp"
#include "support/fake_driver_state.hpp"

namespace pkcomm::test {
namespace fake_cuda {

FakeState* installed = nullptr;

namespace {

CUresult resolve(const char* symbol, void** function, int version, cuuint64_t,
                 CUdriverProcAddressQueryResult* found) {
  struct Entry {
    void* function;
    int version;
  };
  static const std::map<std::string, Entry> table = {
#define PK_FAKE_ENTRY(name, since, need) \
  {#name, {reinterpret_cast<void*>(static_cast<PFN_##name##_v##since>(&fake_cuda::name)), since}},
      PK_CUDA_DRIVER_SYMBOLS(PK_FAKE_ENTRY)
#undef PK_FAKE_ENTRY
  };
  *function = nullptr;
  if (installed == nullptr) return CUDA_ERROR_DEINITIALIZED;
  const std::lock_guard lock(installed->mutex);
  ++installed->lookups[symbol];
  if (version > installed->options.driver_version) return CUDA_ERROR_INVALID_VALUE;
  const auto entry = table.find(symbol);
  const bool known = entry != table.end() && !installed->options.missing.contains(symbol);
  if (!known) {
    *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
  }
  if (version != entry->second.version) installed->fault(std::string(symbol) + " in another version");
  *function = entry->second.function;
  *found = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

bool is_device(const FakeState& state, CUdevice device) {
  return device >= 0 && device < state.options.devices;
}

void copy_text(const std::string& from, char* to, int capacity) {
  std::snprintf(to, static_cast<std::size_t>(capacity), "%s", from.c_str());
}

}  // namespace

// Errors. These two are no calls in the sense of call(): they are part of saying what failed.

CUresult cuGetErrorName(CUresult error, const char** text) {
  static const std::map<CUresult, const char*> names = {
      {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
      {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
      {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
      {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
      {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
      {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {CUDA_ERROR_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY"},
  };
  const auto found = names.find(error);
  *text = found == names.end() ? nullptr : found->second;
  return found == names.end() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  const char* name = nullptr;
  const CUresult result = fake_cuda::cuGetErrorName(error, &name);
  *text = result == CUDA_SUCCESS ? "as the fake driver was told" : nullptr;
  return result;
}

CUresult cuInit(unsigned) {
  if (installed == nullptr) return CUDA_ERROR_DEINITIALIZED;
  const std::lock_guard lock(installed->mutex);
  if (installed->fails("cuInit")) return installed->fail_with;
  installed->initialized = installed->options.init_result == CUDA_SUCCESS;
  return installed->options.init_result;
}

CUresult cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", kPlain, [&](FakeState& state) {
    *version = state.options.driver_version;
    return CUDA_SUCCESS;
  });
}

// Devices.

CUresult cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", kPlain, [&](FakeState& state) {
    *count = state.options.devices;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call("cuDeviceGet", kPlain, [&](FakeState& state) {
    if (!is_device(state, ordinal)) return state.fault("cuDeviceGet of no device", CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int capacity, CUdevice device) {
  return call("cuDeviceGetName", kPlain, [&](FakeState& state) {
    if (!is_device(state, device))
      return state.fault("cuDeviceGetName of no device", CUDA_ERROR_INVALID_DEVICE);
    copy_text("Fake GPU", name, capacity);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return call("cuDeviceGetUuid", kPlain, [&](FakeState& state) {
    if (!is_device(state, device))
      return state.fault("cuDeviceGetUuid of no device", CUDA_ERROR_INVALID_DEVICE);
    std::memcpy(uuid->bytes, FakeDriver::uuid(device).data(), sizeof uuid->bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* id, int capacity, CUdevice device) {
  return call("cuDeviceGetPCIBusId", kPlain, [&](FakeState& state) {
    if (!is_device(state, device)) {
      return state.fault("cuDeviceGetPCIBusId of no device", CUDA_ERROR_INVALID_DEVICE);
    }
    copy_text("0000:0" + std::to_string(device + 1) + ":00.0", id, capacity);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  return call("cuDeviceGetAttribute", kPlain, [&](FakeState& state) {
    if (!is_device(state, device)) {
      return state.fault("cuDeviceGetAttribute of no device", CUDA_ERROR_INVALID_DEVICE);
    }
    std::map<CUdevice_attribute, int> values = state.options.attributes;
    values.insert({
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, state.options.fabric_offered ? 1 : 0},
        {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 1},
    });
    *value = values[which];
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return call("cuDeviceCanAccessPeer", kPlain, [&](FakeState& state) {
    if (!is_device(state, device) || !is_device(state, peer)) {
      return state.fault("cuDeviceCanAccessPeer of no device", CUDA_ERROR_INVALID_DEVICE);
    }
    // Of one device with itself a driver says no.
    *can = device != peer && !state.options.without_peer_access.contains({device, peer}) ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

// Contexts.

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", kPlain, [&](FakeState& state) {
    if (!is_device(state, device)) {
      return state.fault("cuDevicePrimaryCtxRetain of no device", CUDA_ERROR_INVALID_DEVICE);
    }
    if (state.retained[device]++ == 0) state.contexts[state.fresh<CUcontext>()] = device;
    for (const auto& [live, its] : state.contexts) {
      if (its == device) *context = live;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return call("cuDevicePrimaryCtxRelease", kReleases, [&](FakeState& state) {
    if (state.retained[device] == 0) {
      return state.fault("cuDevicePrimaryCtxRelease of what is not retained", CUDA_ERROR_INVALID_CONTEXT);
    }
    if (--state.retained[device] > 0) return CUDA_SUCCESS;
    // The last holder's release takes along what is in the context.
    std::erase_if(state.contexts, [&](const auto& entry) { return entry.second == device; });
    std::erase_if(state.streams, [&](const auto& entry) { return entry.second.device == device; });
    std::erase_if(state.pinned, [&](const auto& entry) {
      if (entry.second.device == device) std::free(reinterpret_cast<void*>(entry.first));
      return entry.second.device == device;
    });
    std::erase_if(state.modules, [&](const auto& entry) { return entry.second.device == device; });
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return call("cuCtxGetCurrent", kPlain, [&](FakeState& state) {
    *context = state.current();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return call("cuCtxSetCurrent", kPlain, [&](FakeState& state) {
    if (context != nullptr && !state.contexts.contains(context)) {
      return state.fault("cuCtxSetCurrent of no context", CUDA_ERROR_INVALID_CONTEXT);
    }
    auto& stack = state.thread().contexts;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent(CUcontext context) {
  return call("cuCtxPushCurrent", kPlain, [&](FakeState& state) {
    if (!state.contexts.contains(context)) {
      return state.fault("cuCtxPushCurrent of no context", CUDA_ERROR_INVALID_CONTEXT);
    }
    state.thread().contexts.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  return call("cuCtxPopCurrent", kNeedsContext | kReleases, [&](FakeState& state) {
    *context = state.current();
    state.thread().contexts.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return call("cuCtxGetDevice", kNeedsContext, [&](FakeState& state) {
    *device = state.device();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return call("cuCtxSynchronize", kNeedsContext, [](FakeState&) { return CUDA_SUCCESS; });
}

}  // namespace fake_cuda

FakeDriver::FakeDriver(FakeOptions options) : state_(std::make_unique<FakeState>(std::move(options))) {
  fake_cuda::installed = state_.get();
  cuda::set_resolver_for_testing(fake_cuda::resolve);
}

FakeDriver::~FakeDriver() {
  cuda::set_resolver_for_testing(nullptr);
  fake_cuda::installed = nullptr;
}

std::array<std::byte, 16> FakeDriver::uuid(int device) {
  std::array<std::byte, 16> uuid;
  uuid.fill(std::byte{0xfa});
  uuid.back() = static_cast<std::byte>(device);
  return uuid;
}

std::size_t FakeDriver::calls() const {
  const std::lock_guard lock(state_->mutex);
  return state_->calls;
}

void FakeDriver::fail_call(std::size_t n, CUresult result) {
  const std::lock_guard lock(state_->mutex);
  state_->fail_at = state_->calls + n;
  state_->fail_at_of_name = 0;
  state_->fail_with = result;
  state_->failed_call.clear();
}

void FakeDriver::fail_call(const std::string& name, std::size_t n, CUresult result) {
  const std::lock_guard lock(state_->mutex);
  state_->fail_at = 0;
  state_->fail_name = name;
  state_->fail_at_of_name = state_->calls_by_name[name] + n;
  state_->fail_with = result;
  state_->failed_call.clear();
}

std::string FakeDriver::failed_call() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failed_call;
}

std::map<std::string, std::size_t> FakeDriver::calls_by_name() const {
  const std::lock_guard lock(state_->mutex);
  return state_->calls_by_name;
}

std::map<std::string, int> FakeDriver::lookups() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lookups;
}

std::vector<std::string> FakeDriver::faults() const {
  const std::lock_guard lock(state_->mutex);
  return state_->faults;
}

std::vector<std::string> FakeDriver::live() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> lines;
  const auto add = [&](std::size_t count, const char* what) {
    if (count != 0) lines.push_back(std::to_string(count) + " " + what);
  };
  add(state_->contexts.size(), "contexts");
  add(state_->allocations.size(), "allocation handles");
  add(state_->reservations.size(), "reservations");
  add(state_->mappings.size(), "mappings");
  add(state_->pinned.size(), "pinned buffers");
  add(state_->streams.size(), "streams");
  add(state_->events.size(), "events");
  add(state_->modules.size(), "modules");
  return lines;
}

std::vector<FakeLaunch> FakeDriver::launches() const {
  const std::lock_guard lock(state_->mutex);
  return state_->launches;
}

FakeThread FakeDriver::thread() const {
  const std::lock_guard lock(state_->mutex);
  return state_->thread();
}

void FakeDriver::make_current(CUcontext context) {
  const std::lock_guard lock(state_->mutex);
  state_->thread().contexts.assign(1, context);
}

void FakeDriver::begin_capture(CUstream stream) {
  const std::lock_guard lock(state_->mutex);
  state_->capturing = true;
  state_->captured = stream;
}

void FakeDriver::end_capture() {
  const std::lock_guard lock(state_->mutex);
  state_->capturing = false;
}

void FakeDriver::set_busy(CUstream stream, bool busy) {
  const std::lock_guard lock(state_->mutex);
  state_->streams.at(stream).busy = busy;
}

}  // namespace pkcomm::test
