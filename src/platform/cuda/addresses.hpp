// Device addresses are pointers in the library and integers in the driver.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace pkcomm::cuda {

inline CUdeviceptr address(const std::byte* pointer) noexcept {
  return reinterpret_cast<CUdeviceptr>(pointer);
}
inline std::byte* pointer(CUdeviceptr address) noexcept { return reinterpret_cast<std::byte*>(address); }

}  // namespace pkcomm::cuda
