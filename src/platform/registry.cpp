// Which platforms this build has, and which of them the process uses.
#include <atomic>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#if PKCOMM_HAVE_CUDA
#include "platform/cuda/process_platform.hpp"
#endif
#include "platform/host/host_platform.hpp"
#include "platform/platform.hpp"

namespace pkcomm {
namespace {

/// Chosen once, since it is asked for at every synchronisation; a forked child chooses anew.
PerProcess<std::atomic<Platform*>> chosen;

Result<Platform*> cuda_platform() {
#if PKCOMM_HAVE_CUDA
  return cuda::process_platform();
#else
  return Status(pkcommUnsupported, "this build has the host platform only");
#endif
}

Result<Platform*> choose() {
  using environment::PlatformChoice;
  using environment::Var;
  Platform* const host = &host::HostPlatform::instance();
  const PlatformChoice choice = environment::get<Var::kPlatform>();
  if (choice == PlatformChoice::kHost) return host;
  auto cuda = cuda_platform();
  if (cuda.ok()) return cuda;
  const Status& why = cuda.status();
  if (choice == PlatformChoice::kCuda) return Status(why.code(), "PKCOMM_PLATFORM=cuda: " + why.message());
  // Where CUDA is there and fails, its program's buffers are likely on a GPU: no silent other platform.
  if (why.code() != pkcommUnsupported) return why;
  log_once("platform", LogLevel::kInfo, "platform host: " + why.message());
  return host;
}

}  // namespace

Result<Platform*> Platform::get() {
  std::atomic<Platform*>& mine = chosen.get();
  if (Platform* const platform = mine.load(std::memory_order_acquire)) return platform;
  PK_ASSIGN(Platform* const platform, choose());
  mine.store(platform, std::memory_order_release);
  return platform;
}

}  // namespace pkcomm
