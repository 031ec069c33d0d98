// Kernel images loaded into one device's context, with every kernel in place before this returns: the driver loads code
// late by default, and loading behind a kernel that spins waits for it, which is for ever where that kernel waits for
// the one being loaded.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "platform/cuda/driver.hpp"
#include "platform/cuda/kernel_image.hpp"

namespace pkcomm::cuda {

/// Owns the modules of one set of images in one context.
class Modules {
 public:
  /// The context must be current, here and in the destructor.
  static Result<std::unique_ptr<Modules>> load(const Driver& driver, std::span<const KernelImage> images,
                                               std::span<const KernelName> kernels);
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;
  ~Modules();

  /// In the order of `kernels`.
  std::span<const CUfunction> functions() const noexcept { return functions_; }

 private:
  explicit Modules(const Driver& driver) noexcept : driver_(driver) {}
  const Driver& driver_;
  std::vector<CUmodule> modules_;
  std::vector<CUfunction> functions_;
};

}  // namespace pkcomm::cuda
