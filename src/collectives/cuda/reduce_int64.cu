// Reductions of int64.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(int64, std::int64_t)
PK_COMMON_ALL_REDUCE(int64, std::int64_t, sum, Sum)
