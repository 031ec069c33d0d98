// Reductions of f8e5m2.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(f8e5m2, pkcomm::numerics::Float8E5M2)
