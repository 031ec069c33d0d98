// Holds a stream back until the host has enqueued all that is to be timed, so that launch costs stay
// outside of the time. The gate is a kernel of one thread that watches a word of mapped host memory; it
// gives up by itself, since a host that waits for room in the launch queue could never open it.
#pragma once

#include <cuda_runtime_api.h>

namespace pkcomm::perf {

/// Loads the gate's kernel. Loading waits for running kernels, so it must not come behind one that waits for
/// this rank.
cudaError_t load_gate();

/// Enqueues a gate. It opens when `*opened`, which only grows, reaches `ticket`; after a few seconds it
/// stores `ticket` to `*overdue` and lets the stream pass. Both words are device addresses of mapped host
/// memory.
cudaError_t enqueue_gate(const unsigned* opened, unsigned* overdue, unsigned ticket, cudaStream_t stream);

}  // namespace pkcomm::perf
