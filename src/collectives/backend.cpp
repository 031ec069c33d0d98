// Which backends this build has.
#include "collectives/backend.hpp"

#include "collectives/host/host_backend.hpp"
#if PKCOMM_HAVE_CUDA
#include "collectives/cuda/cuda_backend.hpp"
#endif

namespace pkcomm {
namespace {

constexpr std::uint32_t bit(Algorithm algorithm) { return std::uint32_t{1} << index(algorithm); }

}  // namespace

Result<std::shared_ptr<Backend>> make_backend(PlatformKind platform, BackendOptions options) {
  if (platform == PlatformKind::kHost) {
    return std::shared_ptr<Backend>(std::make_shared<host::HostBackend>(std::move(options)));
  }
#if PKCOMM_HAVE_CUDA
  return cuda::CudaBackend::create(std::move(options));
#else
  return Status(pkcommUnsupported, "this build has the host platform only");
#endif
}

std::uint32_t algorithms_of(PlatformKind platform) noexcept {
  constexpr std::uint32_t kByRegisters = bit(Algorithm::kOneShotLl) | bit(Algorithm::kTwoShotLl) |
                                         bit(Algorithm::kDirectLdst) | bit(Algorithm::kPairwise);
  if (platform == PlatformKind::kCuda) return kByRegisters;
  return kByRegisters | bit(Algorithm::kDirectTma) | bit(Algorithm::kCopyEngine) |
         bit(Algorithm::kMultimemEmulated);
}

}  // namespace pkcomm
