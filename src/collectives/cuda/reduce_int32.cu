// Reductions of int32.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(int32, std::int32_t)
PK_COMMON_ALL_REDUCE(int32, std::int32_t, sum, Sum)
