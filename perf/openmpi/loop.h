/* The measuring loop that both programs share, so that the two libraries are timed by the same code: batches of calls back
 * to back, each complete before the next begins; the mean of a batch, the best batch. Prints a line a measurement:
 * collective, memory, bytes, microseconds. */
#ifndef PERF_OPENMPI_LOOP_H_
#define PERF_OPENMPI_LOOP_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kAllReduce, kBroadcast, kAllGather, kAllToAll, kCollectives };
static const char* const kNames[kCollectives] = {"all_reduce", "broadcast", "all_gather", "all_to_all"};

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Calls one collective of `bytes` bytes (the larger buffer of a rank), number `i`, to its end. */
typedef void (*call_fn)(int collective, size_t bytes, int i);
/* Agrees on rank 0's number. */
typedef long (*agree_fn)(long mine);

/* Calls that take about 4 ms a batch, 5 batches. */
static double measure(int collective, size_t bytes, call_fn call, agree_fn agree) {
  const double kBatchUs = 4000;
  for (int i = 0; i < 4; ++i) call(collective, bytes, i);
  double start = now_us();
  for (int i = 0; i < 4; ++i) call(collective, bytes, i);
  double each = (now_us() - start) / 4;
  long calls = (long)(kBatchUs / (each > 0.1 ? each : 0.1)) & ~1L;
  calls = agree(calls < 4 ? 4 : calls > 20000 ? 20000 : calls);
  double best = 1e30;
  for (int batch = 0; batch < 5; ++batch) {
    start = now_us();
    for (long i = 0; i < calls; ++i) call(collective, bytes, (int)i);
    each = (now_us() - start) / (double)calls;
    if (each < best) best = each;
  }
  return best;
}

static void sweep(const char* memory, int rank, call_fn call, agree_fn agree) {
  for (int collective = 0; collective < kCollectives; ++collective) {
    for (size_t bytes = 8; bytes <= (size_t)64 << 20; bytes *= bytes < 1024 ? 8 : 4) {
      const double us = measure(collective, bytes, call, agree);
      if (rank == 0) printf("%s %s %zu %.3f\n", kNames[collective], memory, bytes, us);
    }
  }
}

#endif
