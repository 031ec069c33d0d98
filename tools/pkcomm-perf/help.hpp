// The part of --help that teaches: how to begin, and how to read what comes out.
#pragma once

namespace pkcomm::perf {

inline constexpr const char* kHelpFooter = R"(
Examples
  pkcomm-perf all_reduce -g 4 -b 8 -e 128M -f 2
      four rank processes, every power of two
  pkcomm-perf all -g 4 -b 8 -e 16M -f 4
      every operation, a table each
  pkcomm-perf all_gather -t 8 -b 1M -e 64M -f 4 -R 2
      ranks as threads of one process, buffers in the symmetric heap
  mpirun -np 4 pkcomm-perf all_reduce -b 1K -e 1M -f 2
      the ranks are what mpirun, srun or torchrun started; no MPI library is needed
  pkcomm-perf all_reduce -g 4 -b 8 -e 16M -f 4 --algorithm each --plot all_reduce.svg
      one curve for each algorithm
  pkcomm-perf all_reduce -g 4 -b 8 -e 1G -f 4 --backend pkcomm,nccl --graph --eager
      on GPUs, NCCL in turn with pkcomm, calls one by one and in CUDA graphs
  pkcomm-perf all_reduce -g 8 -b 8 -e 1G -f 8 --explain
      what would be done, and why; measures nothing

Columns
  size    bytes. all_reduce, reduce, broadcast, sendrecv, put: one rank's buffer. all_gather,
          reduce_scatter, all_to_all, gather, scatter: all blocks together. all_to_all_v: the most
          that any rank sends or receives. Rounded down to what the ranks can share evenly
  count   elements, as given to the library
  time    mean of -n iterations between two synchronisations, in microseconds, over ranks as -a says;
          on GPUs between two events, launch costs apart, the median of --repeats
  algbw   size / time, in GB/s of 10^9 bytes
  busbw   algbw times 2(n-1)/n (all_reduce), (n-1)/n (operations with blocks) or 1, so that it can be
          compared with a link's rate whatever the number of ranks; 0 and without meaning for 1 rank
  #wrong  elements, on all ranks, that are not exactly what they must be, and bytes written outside of
          the output; N/A: not checked, or no in-place form
  algorithm, mechanism, CTAs
          how the dispatcher did it; --explain gives its reasons
  ..._nccl, ..._n_busbw, ..._ratio
          NCCL's time and busbw, and pkcomm's time over NCCL's: below 1 pkcomm is faster
  ..._graph, ..._g_busbw
          with --graph --eager: the same calls in a graph; n_graph, ng_busbw, g_ratio are NCCL's

Exit code
  0    all was right
  1    wrong data (the last line says FAILED), or a run that failed (a line on stderr says why)
  2    a command line that cannot be
  130, 143  after SIGINT, SIGTERM)";

}  // namespace pkcomm::perf
