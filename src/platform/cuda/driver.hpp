// The CUDA driver: a table of its functions, fetched from libcuda at run time, so that the library loads on machines
// without one and tests can put a driver of their own behind the same table; and the one place where the driver's
// result becomes a Status.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <concepts>
#include <initializer_list>

#include "base/status.hpp"
#include "platform/cuda/symbols.hpp"

namespace pkcomm::cuda {

/// Members have the driver's own names: `driver.cuMemCreate(...)`. An optional one may be null (symbols.hpp).
struct Driver {
#define PK_CUDA_MEMBER(name, version, need) PFN_##name##_v##version name = nullptr;
  PK_CUDA_DRIVER_SYMBOLS(PK_CUDA_MEMBER)
#undef PK_CUDA_MEMBER
  int version = 0;  // 13000: CUDA 13.0
};

/// The process's driver, loaded and initialized when first asked for; the answer stays. From any thread.
/// Errors: pkcommUnsupported where there is none that works here, with the reason; pkcommInvalidUsage in a process that
/// was forked from one that had started CUDA, which CUDA does not allow.
Result<const Driver*> driver();

/// A value to be named in the message of a failed call.
struct Detail {
  template <std::integral T>
  Detail(const char* what, T value) noexcept : name(what), number(static_cast<long long>(value)) {}
  Detail(const char* what, const void* value) noexcept : name(what), address(value) {}
  Detail(const char* what, const char* value) noexcept : name(what), text(value) {}

  const char* name;
  long long number = 0;
  const void* address = nullptr;
  const char* text = nullptr;
};

[[gnu::cold]] Status failure(CUresult result, const char* call, std::initializer_list<Detail> details);

/// "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (out of memory): device 0, bytes 2097152", as pkcommOutOfMemory,
/// pkcommUnsupported or pkcommCudaError.
inline Status check(CUresult result, const char* call, std::initializer_list<Detail> details = {}) {
  if (result == CUDA_SUCCESS) return {};
  return failure(result, call, details);
}

/// Where the functions come from: the driver's cuGetProcAddress.
using Resolver = PFN_cuGetProcAddress_v12000;

/// Lets driver() begin anew, with another source of functions; null: libcuda. What driver() gave before stays valid.
/// For tests: no thread may be using driver().
void set_resolver_for_testing(Resolver resolver);

}  // namespace pkcomm::cuda
