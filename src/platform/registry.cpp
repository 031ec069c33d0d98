// Which platforms this build has, and which of them the process uses.
#include "base/environment.hpp"
#include "platform/host/host_platform.hpp"
#include "platform/platform.hpp"

namespace pkcomm {

Result<Platform*> Platform::get() {
  using environment::PlatformChoice;
  using environment::Var;
  if (environment::get<Var::kPlatform>() == PlatformChoice::kCuda) {
    return Status(pkcommUnsupported, "PKCOMM_PLATFORM=cuda: this build has the host platform only");
  }
  return static_cast<Platform*>(&host::HostPlatform::instance());
}

}  // namespace pkcomm
