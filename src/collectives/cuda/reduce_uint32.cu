// Reductions of uint32.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(uint32, std::uint32_t)
