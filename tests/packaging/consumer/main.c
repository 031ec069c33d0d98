/* A program outside the project, as a user would begin one: C99, the installed header and library, nothing else. One
 * rank reduces with itself, which goes through start-up, a collective, a stream and the end. */
#include <pkcomm/pkcomm.h>
#include <stdio.h>

static int fail(const char* call, pkcommResult_t result) {
  fprintf(stderr, "%s: %s\n", call, pkcommGetErrorString(result));
  return 1;
}

#define CHECK(call)                                          \
  do {                                                       \
    pkcommResult_t result = (call);                          \
    if (result != pkcommSuccess) return fail(#call, result); \
  } while (0)

int main(void) {
  float send[3] = {1.5f, -2.0f, 4.0f};
  float recv[3] = {0.0f, 0.0f, 0.0f};
  int version = 0;
  int i;
  pkcommUniqueId id;
  pkcommComm_t comm;

  CHECK(pkcommGetVersion(&version));
  if (version != PKCOMM_VERSION) {
    fprintf(stderr, "library %d, header %d\n", version, PKCOMM_VERSION);
    return 1;
  }
  CHECK(pkcommGetUniqueId(&id));
  CHECK(pkcommCommInitRank(&comm, 1, id, 0));
  CHECK(pkcommAllReduce(send, recv, 3, pkcommFloat32, pkcommSum, comm, NULL));
  CHECK(pkcommStreamSynchronize(NULL));
  for (i = 0; i < 3; ++i) {
    if (recv[i] != send[i]) {
      fprintf(stderr, "element %d: %g instead of %g\n", i, (double)recv[i], (double)send[i]);
      return 1;
    }
  }
  CHECK(pkcommCommFinalize(comm));
  CHECK(pkcommCommDestroy(comm));
  return 0;
}
