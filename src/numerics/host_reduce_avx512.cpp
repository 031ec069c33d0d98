// The reductions for AVX-512 with byte and word instructions.
#ifdef __x86_64__

#include "numerics/host_rows.hpp"

namespace pkcomm::numerics {
namespace {
PK_REDUCE_ROWS(Avx512, flatten, target("avx512f,avx512bw,avx512vl,avx512dq"));
}

ReduceRows detail::avx512_rows(pkcommDataType_t dtype, ReduceKind kind) {
  return visit_reduction(dtype, kind, Avx512{});
}

}  // namespace pkcomm::numerics

#endif
