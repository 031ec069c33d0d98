/* OpenMPI's side of the comparison: mpirun -n 2 mpi_loop LABEL. */
#include <mpi.h>

#include "loop.h"

static int rank, nranks;
static char *from, *to;

static void call(int collective, size_t bytes, int i) {
  const int block = (int)(bytes / (size_t)nranks);
  switch (collective) {
    case kAllReduce:
      MPI_Allreduce(from, to, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case kBroadcast:
      MPI_Bcast(to, (int)bytes, MPI_BYTE, i % nranks, MPI_COMM_WORLD);
      break;
    case kAllGather:
      MPI_Allgather(from, block, MPI_BYTE, to, block, MPI_BYTE, MPI_COMM_WORLD);
      break;
    default:
      MPI_Alltoall(from, block, MPI_BYTE, to, block, MPI_BYTE, MPI_COMM_WORLD);
  }
}
static long agree(long mine) {
  MPI_Bcast(&mine, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return mine;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &nranks);
  from = calloc(1, (size_t)64 << 20);
  to = calloc(1, (size_t)64 << 20);
  memset(from, 1, (size_t)64 << 20);
  memset(to, 1, (size_t)64 << 20);
  sweep(argc > 1 ? argv[1] : "malloc", rank, call, agree);
  MPI_Finalize();
  return 0;
}
