// Reductions of int8.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(int8, std::int8_t)
