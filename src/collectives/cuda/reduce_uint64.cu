// Reductions of uint64.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(uint64, std::uint64_t)
