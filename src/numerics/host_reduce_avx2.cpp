// The reductions for AVX2: wider vectors, and the 16-bit packing that SSE2 lacks.
#ifdef __x86_64__

#include "numerics/host_rows.hpp"

namespace pkcomm::numerics {
namespace {
PK_REDUCE_ROWS(Avx2, flatten, target("avx2"));
}

ReduceRows detail::avx2_rows(pkcommDataType_t dtype, ReduceKind kind) {
  return visit_reduction(dtype, kind, Avx2{});
}

}  // namespace pkcomm::numerics

#endif
