// Which platforms this build has, and which of them the process uses.
#include <atomic>

#include "base/environment.hpp"
#include "platform/host/host_platform.hpp"
#include "platform/platform.hpp"

namespace pkcomm {

Result<Platform*> Platform::get() {
  using environment::PlatformChoice;
  using environment::Var;
  // Chosen once: it is asked for at every synchronisation.
  static std::atomic<bool> chosen{false};
  if (chosen.load(std::memory_order_relaxed)) return static_cast<Platform*>(&host::HostPlatform::instance());
  if (environment::get<Var::kPlatform>() == PlatformChoice::kCuda) {
    return Status(pkcommUnsupported, "PKCOMM_PLATFORM=cuda: this build has the host platform only");
  }
  chosen.store(true, std::memory_order_relaxed);
  return static_cast<Platform*>(&host::HostPlatform::instance());
}

}  // namespace pkcomm
