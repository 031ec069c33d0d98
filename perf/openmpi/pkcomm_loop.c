/* pkcomm's side of the comparison: two processes of its own, buffers from malloc or from the symmetric heap:
 * pkcomm_loop malloc|heap. */
#include <pkcomm/pkcomm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

enum { kRanks = 2 };

static int rank;
static char *from, *to;
static pkcommComm_t comm;
static pkcommStream_t stream;

static void check(pkcommResult_t result, const char* what) {
  if (result == pkcommSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", what, pkcommGetErrorString(result), pkcommGetLastError(NULL));
  _exit(1);
}

static void call(int collective, size_t bytes, int i) {
  const size_t block = bytes / kRanks;
  pkcommResult_t result;
  switch (collective) {
    case kAllReduce:
      result = pkcommAllReduce(from, to, bytes / 4, pkcommFloat32, pkcommSum, comm, stream);
      break;
    case kBroadcast:
      result = pkcommBroadcast(to, to, bytes, pkcommUint8, i % kRanks, comm, stream);
      break;
    case kAllGather:
      result = pkcommAllGather(from, to, block, pkcommUint8, comm, stream);
      break;
    default:
      result = pkcommAllToAll(from, to, block, pkcommUint8, comm, stream);
  }
  check(result, kNames[collective]);
  check(pkcommStreamSynchronize(stream), "synchronize");
}
static long agree(long mine) {
  check(pkcommBroadcast(&mine, &mine, sizeof mine, pkcommUint8, 0, comm, stream), "agree");
  check(pkcommStreamSynchronize(stream), "agree");
  return mine;
}

static void run(const char* memory, pkcommUniqueId id) {
  const size_t bytes = (size_t)64 << 20;
  check(pkcommCommInitRank(&comm, kRanks, id, rank), "init");
  check(pkcommStreamCreate(&stream), "stream");
  if (strcmp(memory, "heap") == 0) {
    check(pkcommHeapAlloc(comm, bytes, (void**)&from), "heap");
    check(pkcommHeapAlloc(comm, bytes, (void**)&to), "heap");
  } else {
    from = malloc(bytes);
    to = malloc(bytes);
  }
  memset(from, 1, bytes);
  memset(to, 1, bytes);
  sweep(memory, rank, call, agree);
  check(pkcommCommDestroy(comm), "destroy");
  check(pkcommStreamDestroy(stream), "stream");
}

int main(int argc, char** argv) {
  int channel[2];
  pkcommUniqueId id;
  if (argc != 2 || pipe(channel) != 0) return 2;
  const pid_t child = fork();
  rank = child == 0;
  if (rank == 1) {
    if (read(channel[0], &id, sizeof id) != (ssize_t)sizeof id) return 1;
  } else {
    check(pkcommGetUniqueId(&id), "id");
    if (write(channel[1], &id, sizeof id) != (ssize_t)sizeof id) return 1;
  }
  run(argv[1], id);
  int status = 0;
  if (rank == 0) {
    fflush(stdout);
    waitpid(child, &status, 0);
  }
  return status != 0;
}
