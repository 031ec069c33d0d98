// Reductions of half.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(half, pkcomm::numerics::Float16)
PK_COMMON_REDUCTION(half, pkcomm::numerics::Float16, sum, Sum)
PK_COMMON_REDUCTION(half, pkcomm::numerics::Float16, avg, Avg)
PK_COMMON_ALL_REDUCE(half, pkcomm::numerics::Float16, max, Max)
