// Shareable memory of the CUDA platform. An allocation lives as long as anything that refers to it: a handle, a
// descriptor or a mapping. So handles are released as soon as there is a descriptor or a mapping, and what is left to
// give back is what the callers hold.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "platform/cuda/addresses.hpp"
#include "platform/cuda/cuda_platform.hpp"

namespace pkcomm::cuda {
namespace {

CUmemAllocationProp properties(CUdevice device, unsigned handle_types) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
  return properties;
}

/// Owns a reference to an allocation, within one function.
class Allocation {
 public:
  Allocation(const Driver& driver, CUmemGenericAllocationHandle handle) noexcept
      : driver_(driver), handle_(handle) {}
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() { log_if_failed(check(driver_.cuMemRelease(handle_), "cuMemRelease")); }
  CUmemGenericAllocationHandle get() const noexcept { return handle_; }

 private:
  const Driver& driver_;
  const CUmemGenericAllocationHandle handle_;
};

}  // namespace

Result<std::size_t> CudaPlatform::granularity_of(const Slot& slot) const {
  const CUmemAllocationProp wanted = properties(slot.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  std::size_t granularity = 0;
  PK_TRY(check(
      driver_.cuMemGetAllocationGranularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
      "cuMemGetAllocationGranularity", {{"device", slot.handle}}));
  return granularity;
}

Status CudaPlatform::check_size(const char* what, std::size_t bytes) const {
  if (bytes != 0 && bytes % granularity_ == 0) return {};
  return Status(pkcommInternalError, std::string(what) + ": granularity " + std::to_string(granularity_) +
                                         ", size " + std::to_string(bytes));
}

Result<CUmemGenericAllocationHandle> CudaPlatform::allocate(const Slot& slot, std::size_t bytes) const {
  CUmemGenericAllocationHandle handle = 0;
  if (slot.fabric_handles) {
    // Without IMEX the driver offers fabric handles and then refuses the allocation; a descriptor is all we must have.
    const CUmemAllocationProp both =
        properties(slot.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC);
    if (driver_.cuMemCreate(&handle, bytes, &both, 0) == CUDA_SUCCESS) return handle;
  }
  const CUmemAllocationProp plain = properties(slot.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  PK_TRY(check(driver_.cuMemCreate(&handle, bytes, &plain, 0), "cuMemCreate",
               {{"device", slot.handle}, {"bytes", bytes}}));
  return handle;
}

Result<int> CudaPlatform::create_memory(int device, std::size_t bytes) {
  PK_TRY(check_size("memory", bytes));
  PK_TRY(opened(device).status());
  PK_ASSIGN(const Slot* const slot, this->slot(device));
  PK_ASSIGN(const RelaxedCapture relaxed, RelaxedCapture::enter(driver_));
  PK_ASSIGN(const CUmemGenericAllocationHandle handle, allocate(*slot, bytes));
  const Allocation allocation(driver_, handle);
  int descriptor = -1;
  PK_TRY(check(driver_.cuMemExportToShareableHandle(&descriptor, allocation.get(),
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "cuMemExportToShareableHandle", {{"device", slot->handle}, {"bytes", bytes}}));
  // A program started by exec has no use for it, and would keep the memory.
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return descriptor;
}

Result<std::byte*> CudaPlatform::reserve(std::size_t bytes) {
  PK_TRY(check_size("reservation", bytes));
  CUdeviceptr base = 0;
  PK_TRY(check(driver_.cuMemAddressReserve(&base, bytes, granularity_, 0, 0), "cuMemAddressReserve",
               {{"bytes", bytes}}));
  return pointer(base);
}

void CudaPlatform::release(std::byte* base, std::size_t bytes) {
  log_if_failed(check(driver_.cuMemAddressFree(address(base), bytes), "cuMemAddressFree",
                      {{"address", base}, {"bytes", bytes}}));
}

Status CudaPlatform::map(int descriptor, std::size_t bytes, std::byte* at, std::span<const int> devices) {
  PK_TRY(check_size("mapping", bytes));
  std::vector<CUmemAccessDesc> access;
  for (const int device : devices) {
    PK_ASSIGN(const Slot* const slot, this->slot(device));
    access.push_back({.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = slot->handle},
                      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  }
  PK_ASSIGN(const RelaxedCapture relaxed, RelaxedCapture::enter(driver_));
  CUmemGenericAllocationHandle handle = 0;
  PK_TRY(check(driver_.cuMemImportFromShareableHandle(
                   &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "cuMemImportFromShareableHandle", {{"descriptor", descriptor}, {"bytes", bytes}}));
  const Allocation allocation(driver_, handle);
  PK_TRY(check(driver_.cuMemMap(address(at), bytes, 0, allocation.get(), 0), "cuMemMap",
               {{"address", at}, {"bytes", bytes}}));
  Status granted = check(driver_.cuMemSetAccess(address(at), bytes, access.data(), access.size()),
                         "cuMemSetAccess", {{"address", at}, {"bytes", bytes}, {"devices", access.size()}});
  if (!granted.ok()) unmap(at, bytes);
  return granted;
}

void CudaPlatform::unmap(std::byte* at, std::size_t bytes) {
  const auto relaxed = RelaxedCapture::enter(driver_);
  log_if_failed(relaxed.status());
  log_if_failed(
      check(driver_.cuMemUnmap(address(at), bytes), "cuMemUnmap", {{"address", at}, {"bytes", bytes}}));
}

}  // namespace pkcomm::cuda
