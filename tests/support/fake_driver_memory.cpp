// The fake driver's memory: allocations are memfds, a mapping becomes usable when access to it is set.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "support/fake_driver_state.hpp"

namespace pkcomm::test {
namespace {

constexpr int kReservation = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

bool inside(CUdeviceptr at, std::size_t bytes, CUdeviceptr base, std::size_t size) {
  return at >= base && at - base <= size && bytes <= size - (at - base);
}

/// Whether the current context's device may touch the range; pinned memory is everybody's.
CUresult check_range(FakeState& state, const char* call, CUdeviceptr at, std::size_t bytes) {
  const FakeState::Mapping* const mapping = state.find_mapping(at, bytes);
  if (mapping == nullptr) return state.fault(std::string(call) + ": not mapped");
  if (!mapping->devices.contains(state.device())) return state.fault(std::string(call) + ": no access");
  return CUDA_SUCCESS;
}

/// What every copy and fill on a stream must be like.
CUresult check_stream_work(FakeState& state, const char* call, CUstream stream) {
  const auto found = state.streams.find(stream);
  if (found == state.streams.end()) {
    return state.fault(std::string(call) + " on a default stream, or none", CUDA_ERROR_INVALID_HANDLE);
  }
  if (found->second.device != state.device()) {
    return state.fault(std::string(call) + " on another device's stream", CUDA_ERROR_INVALID_HANDLE);
  }
  return CUDA_SUCCESS;
}

CUresult check_pinned(FakeState& state, const char* call, const void* at, std::size_t bytes) {
  const bool pinned = std::any_of(state.pinned.begin(), state.pinned.end(), [&](const auto& entry) {
    return inside(reinterpret_cast<CUdeviceptr>(at), bytes, entry.first, entry.second.bytes);
  });
  return pinned ? CUDA_SUCCESS : state.fault(std::string(call) + " with pageable memory");
}

#define PK_FAKE_TRY(expression)                                                      \
  do {                                                                               \
    if (const CUresult failed = (expression); failed != CUDA_SUCCESS) return failed; \
  } while (false)

}  // namespace

const FakeState::Mapping* FakeState::find_mapping(CUdeviceptr at, std::size_t bytes) const {
  for (const auto& [base, mapping] : mappings) {
    if (inside(at, bytes, base, mapping.bytes)) return &mapping;
  }
  return nullptr;
}

namespace fake_cuda {

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  return call("cuMemGetAllocationGranularity", kPlain, [&](FakeState& state) {
    *granularity = state.options.granularity;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  return call("cuMemCreate", kUnsafe, [&](FakeState& state) {
    if (bytes == 0 || bytes % state.options.granularity != 0) return state.fault("cuMemCreate: granularity");
    if (flags != 0 || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
      return state.fault("cuMemCreate: properties");
    }
    if (!state.retained[properties->location.id])
      return state.fault("cuMemCreate on a device without context");
    if ((properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0 && !state.options.fabric_works) {
      return CUDA_ERROR_NOT_PERMITTED;
    }
    const int descriptor = memfd_create("fake GPU memory", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) std::abort();
    *handle = state.fresh<CUmemGenericAllocationHandle>();
    state.allocations[*handle] = {descriptor, bytes};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return call("cuMemRelease", kUnsafe | kReleases, [&](FakeState& state) {
    const auto found = state.allocations.find(handle);
    if (found == state.allocations.end()) return state.fault("cuMemRelease of no allocation");
    close(found->second.descriptor);
    state.allocations.erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemExportToShareableHandle(void* descriptor, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
  return call("cuMemExportToShareableHandle", kPlain, [&](FakeState& state) {
    const auto found = state.allocations.find(handle);
    if (found == state.allocations.end() || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      return state.fault("cuMemExportToShareableHandle of no allocation, or as what it is not");
    }
    *static_cast<int*>(descriptor) =
        dup(found->second.descriptor);  // inherited by exec, like a driver's may be
    return CUDA_SUCCESS;
  });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* descriptor,
                                        CUmemAllocationHandleType type) {
  return call("cuMemImportFromShareableHandle", kUnsafe, [&](FakeState& state) {
    struct stat status {};
    const int shared = static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor));
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(shared, &status) != 0) {
      return state.fault("cuMemImportFromShareableHandle of no descriptor");
    }
    *handle = state.fresh<CUmemGenericAllocationHandle>();
    state.allocations[*handle] = {fcntl(shared, F_DUPFD_CLOEXEC, 0),
                                  static_cast<std::size_t>(status.st_size)};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* base, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                             unsigned long long) {
  return call("cuMemAddressReserve", kPlain, [&](FakeState& state) {
    const std::size_t step = std::max(alignment, state.options.granularity);
    if (bytes == 0 || bytes % state.options.granularity != 0)
      return state.fault("cuMemAddressReserve: granularity");
    // More than is asked for, then the unaligned ends are given back.
    const auto raw =
        reinterpret_cast<std::uintptr_t>(mmap(nullptr, bytes + step, PROT_NONE, kReservation, -1, 0));
    if (raw == reinterpret_cast<std::uintptr_t>(MAP_FAILED)) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::uintptr_t aligned = (raw + step - 1) / step * step;
    if (aligned != raw) munmap(pointer(raw), aligned - raw);
    munmap(pointer(aligned + bytes), raw + step - aligned);
    *base = aligned;
    state.reservations[*base] = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressFree(CUdeviceptr base, std::size_t bytes) {
  return call("cuMemAddressFree", kReleases, [&](FakeState& state) {
    const auto found = state.reservations.find(base);
    if (found == state.reservations.end() || found->second != bytes) {
      return state.fault("cuMemAddressFree of no reservation, or of a part");
    }
    for (const auto& entry : state.mappings) {
      if (inside(entry.first, 1, base, bytes)) return state.fault("cuMemAddressFree with a mapping inside");
    }
    munmap(pointer(base), bytes);
    state.reservations.erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  return call("cuMemMap", kUnsafe, [&](FakeState& state) {
    const std::size_t step = state.options.granularity;
    const auto allocation = state.allocations.find(handle);
    if (allocation == state.allocations.end()) return state.fault("cuMemMap of no allocation");
    if (at % step != 0 || bytes == 0 || bytes % step != 0 || offset != 0)
      return state.fault("cuMemMap: granularity");
    if (bytes > allocation->second.bytes) return state.fault("cuMemMap of more than there is");
    const bool reserved =
        std::any_of(state.reservations.begin(), state.reservations.end(),
                    [&](const auto& entry) { return inside(at, bytes, entry.first, entry.second); });
    if (!reserved) return state.fault("cuMemMap outside of a reservation");
    for (const auto& [base, mapping] : state.mappings) {
      if (at < base + mapping.bytes && base < at + bytes) return state.fault("cuMemMap over a mapping");
    }
    if (mmap(pointer(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, allocation->second.descriptor, 0) ==
        MAP_FAILED) {
      std::abort();
    }
    state.mappings[at] = {bytes, {}};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  return call("cuMemUnmap", kUnsafe | kReleases, [&](FakeState& state) {
    const auto found = state.mappings.find(at);
    if (found == state.mappings.end() || found->second.bytes != bytes) {
      return state.fault("cuMemUnmap of no mapping, or of a part");
    }
    mmap(pointer(at), bytes, PROT_NONE, kReservation | MAP_FIXED, -1, 0);
    state.mappings.erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count) {
  return call("cuMemSetAccess", kUnsafe, [&](FakeState& state) {
    const auto found = state.mappings.find(at);
    if (found == state.mappings.end() || found->second.bytes != bytes || count == 0) {
      return state.fault("cuMemSetAccess of no mapping, of a part, or for nobody");
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id < 0 ||
          access[i].location.id >= state.options.devices ||
          access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return state.fault("cuMemSetAccess: description");
      }
      found->second.devices.insert(access[i].location.id);
    }
    if (mprotect(pointer(at), bytes, PROT_READ | PROT_WRITE) != 0) std::abort();
    return CUDA_SUCCESS;
  });
}

// Pinned memory.

CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return call("cuMemHostAlloc", kNeedsContext | kUnsafe, [&](FakeState& state) {
    *memory = std::calloc(1, bytes);
    state.pinned[reinterpret_cast<std::uintptr_t>(*memory)] = {bytes, state.device()};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFreeHost(void* memory) {
  return call("cuMemFreeHost", kNeedsContext | kUnsafe | kReleases, [&](FakeState& state) {
    if (state.pinned.erase(reinterpret_cast<std::uintptr_t>(memory)) == 0) {
      return state.fault("cuMemFreeHost of no pinned memory");
    }
    std::free(memory);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* at, void* memory, unsigned) {
  return call("cuMemHostGetDevicePointer", kNeedsContext, [&](FakeState& state) {
    PK_FAKE_TRY(check_pinned(state, "cuMemHostGetDevicePointer", memory, 1));
    *at = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr at) {
  return call("cuPointerGetAttributes", kNeedsContext, [&](FakeState& state) {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    for (const auto& [start, mapping] : state.mappings) {
      if (inside(at, 1, start, mapping.bytes)) base = start, bytes = mapping.bytes;
    }
    const bool device = base != 0;
    for (const auto& [start, buffer] : state.pinned) {
      if (inside(at, 1, start, buffer.bytes)) base = start, bytes = buffer.bytes;
    }
    for (unsigned i = 0; i < count; ++i) {
      switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:  // 0: memory of which the driver knows nothing
          *static_cast<unsigned*>(data[i]) = device      ? CU_MEMORYTYPE_DEVICE
                                             : base != 0 ? CU_MEMORYTYPE_HOST
                                                         : 0;
          break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
          *static_cast<CUdeviceptr*>(data[i]) = base;
          break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
          *static_cast<std::size_t*>(data[i]) = bytes;
          break;
        default:
          return state.fault("cuPointerGetAttributes: an attribute that this driver does not know");
      }
    }
    return CUDA_SUCCESS;
  });
}

// Fills and copies. All are complete at once, those on streams too.

CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, std::size_t bytes) {
  return call("cuMemsetD8", kNeedsContext | kUnsafe, [&](FakeState& state) {
    PK_FAKE_TRY(check_range(state, "cuMemsetD8", at, bytes));
    std::memset(pointer(at), value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, std::size_t bytes, CUstream stream) {
  return call("cuMemsetD8Async", kNeedsContext, [&](FakeState& state) {
    PK_FAKE_TRY(check_stream_work(state, "cuMemsetD8Async", stream));
    PK_FAKE_TRY(check_range(state, "cuMemsetD8Async", at, bytes));
    if (!state.is_captured(stream)) std::memset(pointer(at), value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  return call("cuMemcpyHtoD", kNeedsContext | kUnsafe, [&](FakeState& state) {
    PK_FAKE_TRY(check_range(state, "cuMemcpyHtoD", to, bytes));
    std::memcpy(pointer(to), from, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyHtoDAsync", kNeedsContext, [&](FakeState& state) {
    PK_FAKE_TRY(check_stream_work(state, "cuMemcpyHtoDAsync", stream));
    PK_FAKE_TRY(check_pinned(state, "cuMemcpyHtoDAsync", from, bytes));
    PK_FAKE_TRY(check_range(state, "cuMemcpyHtoDAsync", to, bytes));
    if (!state.is_captured(stream)) std::memcpy(pointer(to), from, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  return call("cuMemcpyDtoH", kNeedsContext | kUnsafe, [&](FakeState& state) {
    PK_FAKE_TRY(check_range(state, "cuMemcpyDtoH", from, bytes));
    std::memcpy(to, pointer(from), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoHAsync", kNeedsContext, [&](FakeState& state) {
    PK_FAKE_TRY(check_stream_work(state, "cuMemcpyDtoHAsync", stream));
    PK_FAKE_TRY(check_pinned(state, "cuMemcpyDtoHAsync", to, bytes));
    PK_FAKE_TRY(check_range(state, "cuMemcpyDtoHAsync", from, bytes));
    if (!state.is_captured(stream)) std::memcpy(to, pointer(from), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoDAsync", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream))
      return state.fault("cuMemcpyDtoDAsync on no stream", CUDA_ERROR_INVALID_HANDLE);
    PK_FAKE_TRY(check_range(state, "cuMemcpyDtoDAsync", to, bytes));
    PK_FAKE_TRY(check_range(state, "cuMemcpyDtoDAsync", from, bytes));
    if (!state.is_captured(stream)) std::memmove(pointer(to), pointer(from), bytes);
    return CUDA_SUCCESS;
  });
}

}  // namespace fake_cuda
}  // namespace pkcomm::test
