// Chooses between the two devices. PKCOMM_TOOL_CUDA says whether the second was compiled.
#include "device.hpp"

#include <glob.h>

#include <cstdlib>

namespace pkcomm::perf {

bool gpus_in_sight() {
#if PKCOMM_TOOL_CUDA
  glob_t found{};
  const bool any = glob("/dev/nvidia[0-9]*", GLOB_NOSORT, nullptr, &found) == 0 && found.gl_pathc > 0;
  globfree(&found);
  return any;
#else
  return false;
#endif
}

Result<std::unique_ptr<Device>> open_device(const std::string& platform, int rank, bool null_stream) {
  std::string wanted = platform;
  const char* variable = std::getenv("PKCOMM_PLATFORM");
  if (wanted == "auto" && variable != nullptr) wanted = variable;
#if PKCOMM_TOOL_CUDA
  const bool any = wanted != "host" && gpus_in_sight() && cuda_devices() > 0;
  if (wanted == "cuda" || any) return make_cuda_device(rank, null_stream);
#else
  (void)rank;
  if (wanted == "cuda") return Error{"the CUDA platform: this pkcomm-perf was built without CUDA"};
#endif
  return make_host_device(null_stream);
}

}  // namespace pkcomm::perf
