// Reductions of bfloat16.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(bfloat16, pkcomm::numerics::Bfloat16)
PK_COMMON_REDUCTION(bfloat16, pkcomm::numerics::Bfloat16, sum, Sum)
PK_COMMON_REDUCTION(bfloat16, pkcomm::numerics::Bfloat16, avg, Avg)
PK_COMMON_ALL_REDUCE(bfloat16, pkcomm::numerics::Bfloat16, max, Max)
