// Reductions of float.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(float, float)
PK_COMMON_REDUCTION(float, float, sum, Sum)
PK_COMMON_REDUCTION(float, float, avg, Avg)
PK_COMMON_ALL_REDUCE(float, float, max, Max)
