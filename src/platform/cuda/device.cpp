// Opening a device, and copies between the processor and mapped memory.
#include "platform/cuda/device.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "platform/cuda/addresses.hpp"

namespace pkcomm::cuda {
namespace {

/// Bytes of pinned memory: what is read and written so are control words and error texts.
constexpr std::size_t kStagingBytes = 64 * 1024;

/// Beyond every device's highest priority, to which the driver brings it: another one than the application's streams
/// have, as a rule, and so other hardware queues than those in which work can stand behind a kernel that spins.
constexpr int kHighestPriority = -100;

}  // namespace

Result<std::unique_ptr<Device>> Device::open(const Driver& driver, CUdevice handle) {
  std::unique_ptr<Device> device(new Device(driver, handle));
  PK_ASSIGN(const RelaxedCapture relaxed, RelaxedCapture::enter(driver));
  PK_TRY(check(driver.cuDevicePrimaryCtxRetain(&device->context_, handle), "cuDevicePrimaryCtxRetain",
               {{"device", handle}}));
  PK_TRY(device->make_resources());
  return device;
}

Status Device::make_resources() {
  PK_ASSIGN(const CurrentContext current, CurrentContext::enter(driver_, context_));
  PK_TRY(check(driver_.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, kHighestPriority),
               "cuStreamCreateWithPriority", {{"device", handle_}}));
  return check(driver_.cuMemHostAlloc(&staging_, kStagingBytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc",
               {{"device", handle_}, {"bytes", kStagingBytes}});
}

Device::~Device() {
  if (context_ == nullptr) return;
  if (const auto scope = enter(); scope.ok()) {
    loaded_.clear();
    if (staging_ != nullptr) log_if_failed(check(driver_.cuMemFreeHost(staging_), "cuMemFreeHost"));
    if (stream_ != nullptr) log_if_failed(check(driver_.cuStreamDestroy(stream_), "cuStreamDestroy"));
  } else {
    log_if_failed(scope.status());  // what is in the context goes with it, if nobody else holds it
  }
  log_if_failed(check(driver_.cuDevicePrimaryCtxRelease(handle_), "cuDevicePrimaryCtxRelease"));
}

Result<Device::Scope> Device::enter_context(const Driver& driver, CUcontext context) {
  PK_ASSIGN(RelaxedCapture relaxed, RelaxedCapture::enter(driver));
  PK_ASSIGN(CurrentContext current, CurrentContext::enter(driver, context));
  return Scope{std::move(relaxed), std::move(current)};
}

Status Device::finish(const char* call, const void* at, std::size_t bytes) {
  return check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize",
               {{"after", call}, {"address", at}, {"bytes", bytes}});
}

Status Device::clear(std::byte* at, std::size_t bytes) {
  PK_ASSIGN(const Scope scope, enter());
  PK_TRY(check(driver_.cuMemsetD8Async(address(at), 0, bytes, stream_), "cuMemsetD8Async",
               {{"device", handle_}, {"address", at}, {"bytes", bytes}}));
  return finish("cuMemsetD8Async", at, bytes);
}

// By way of pinned memory: with any other the driver makes a staging buffer of its own when it comes to it, and that may
// wait for the device.
template <class Copy>
Status Device::copy_in_pieces(std::size_t bytes, const Copy& copy) {
  PK_ASSIGN(const Scope scope, enter());
  const std::lock_guard lock(staging_mutex_);
  for (std::size_t done = 0; done < bytes; done += kStagingBytes) {
    PK_TRY(copy(done, std::min(kStagingBytes, bytes - done)));
  }
  return {};
}

Status Device::read(void* to, const std::byte* from, std::size_t bytes) {
  return copy_in_pieces(bytes, [&](std::size_t offset, std::size_t piece) -> Status {
    PK_TRY(check(driver_.cuMemcpyDtoHAsync(staging_, address(from + offset), piece, stream_),
                 "cuMemcpyDtoHAsync", {{"device", handle_}, {"address", from + offset}, {"bytes", piece}}));
    PK_TRY(finish("cuMemcpyDtoHAsync", from + offset, piece));
    std::memcpy(static_cast<std::byte*>(to) + offset, staging_, piece);
    return {};
  });
}

Status Device::write(std::byte* to, const void* from, std::size_t bytes) {
  return copy_in_pieces(bytes, [&](std::size_t offset, std::size_t piece) -> Status {
    std::memcpy(staging_, static_cast<const std::byte*>(from) + offset, piece);
    PK_TRY(check(driver_.cuMemcpyHtoDAsync(address(to + offset), staging_, piece, stream_),
                 "cuMemcpyHtoDAsync", {{"device", handle_}, {"address", to + offset}, {"bytes", piece}}));
    return finish("cuMemcpyHtoDAsync", to + offset, piece);
  });
}

Result<const Modules*> Device::modules(std::span<const KernelImage> images,
                                       std::span<const KernelName> kernels) {
  const std::lock_guard lock(modules_mutex_);
  for (const Loaded& loaded : loaded_) {
    if (loaded.images == images.data()) return loaded.modules.get();
  }
  PK_ASSIGN(const Scope scope, enter());
  PK_ASSIGN(std::unique_ptr<Modules> modules, Modules::load(driver_, images, kernels));
  loaded_.push_back({images.data(), std::move(modules)});
  return loaded_.back().modules.get();
}

}  // namespace pkcomm::cuda
