// The table behind host_reduce.hpp, and the choice of the instruction set. A file for each set, as each takes
// several seconds to compile. What they gain over the baseline is in host_reduce.hpp.
#include "numerics/host_reduce.hpp"

#include "numerics/host_rows.hpp"

namespace pkcomm::numerics {
namespace {
PK_REDUCE_ROWS(Baseline, flatten);
}

HostVariant best_host_variant() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return HostVariant::kAvx512;
  }
  if (__builtin_cpu_supports("avx2")) return HostVariant::kAvx2;
#endif
  return HostVariant::kBaseline;
}

ReduceRows host_reduce_rows(pkcommDataType_t dtype, ReduceKind kind, HostVariant variant) {
#ifdef __x86_64__
  if (variant == HostVariant::kAvx512) return detail::avx512_rows(dtype, kind);
  if (variant == HostVariant::kAvx2) return detail::avx2_rows(dtype, kind);
#else
  static_cast<void>(variant);
#endif
  return visit_reduction(dtype, kind, Baseline{});
}

}  // namespace pkcomm::numerics
