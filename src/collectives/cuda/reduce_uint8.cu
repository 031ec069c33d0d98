// Reductions of uint8.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(uint8, std::uint8_t)
