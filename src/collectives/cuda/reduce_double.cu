// Reductions of double.
#include "collectives/cuda/reductions.cuh"

PK_REDUCTIONS(double, double)
