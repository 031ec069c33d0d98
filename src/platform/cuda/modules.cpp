// Loading of the kernels.
#include "platform/cuda/modules.hpp"

#include <string>

#include "base/log.hpp"

namespace pkcomm::cuda {
namespace {

/// Loads the function's code now. Drivers before 12.4 have no call for it, but load before they tell attributes.
Status force_load(const Driver& driver, CUfunction function, const char* name) {
  if (driver.cuFuncLoad != nullptr) {
    return check(driver.cuFuncLoad(function), "cuFuncLoad", {{"kernel", name}});
  }
  int registers = 0;
  return check(driver.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
               "cuFuncGetAttribute", {{"kernel", name}});
}

}  // namespace

Result<std::unique_ptr<Modules>> Modules::load(const Driver& driver, std::span<const KernelImage> images,
                                               std::span<const KernelName> kernels) {
  std::unique_ptr<Modules> loaded(new Modules(driver));
  for (const KernelImage& image : images) {
    CUmodule module = nullptr;
    PK_TRY(check(driver.cuModuleLoadData(&module, image.data), "cuModuleLoadData",
                 {{"image", image.name}, {"bytes", image.bytes}}));
    loaded->modules_.push_back(module);
  }
  for (const KernelName& kernel : kernels) {
    if (static_cast<std::size_t>(kernel.image) >= images.size()) {
      return Status(pkcommInternalError, "kernel " + std::string(kernel.name) + " is said to be in image " +
                                             std::to_string(kernel.image) + " of " +
                                             std::to_string(images.size()));
    }
    CUfunction function = nullptr;
    PK_TRY(check(driver.cuModuleGetFunction(
                     &function, loaded->modules_[static_cast<std::size_t>(kernel.image)], kernel.name),
                 "cuModuleGetFunction",
                 {{"image", images[static_cast<std::size_t>(kernel.image)].name}, {"kernel", kernel.name}}));
    PK_TRY(force_load(driver, function, kernel.name));
    loaded->functions_.push_back(function);
  }
  return loaded;
}

Modules::~Modules() {
  for (CUmodule const module : modules_)
    log_if_failed(check(driver_.cuModuleUnload(module), "cuModuleUnload"));
}

}  // namespace pkcomm::cuda
