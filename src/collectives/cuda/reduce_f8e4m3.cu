// Reductions of f8e4m3.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(f8e4m3, pkcomm::numerics::Float8E4M3)
