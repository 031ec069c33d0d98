// Keeps memory and the library's own threads near each other on machines of several NUMA nodes. On one node, and where
// the system refuses, everything here does nothing: placement is speed, never correctness. A caller's thread is never
// moved.
#pragma once

#include <cstddef>

#include "base/status.hpp"

namespace pkcomm::topology {

/// Nodes that this process may use memory of; 1 where they cannot be told apart. The first call may take milliseconds.
int numa_nodes();

/// Index (0 .. numa_nodes()-1) of the node on which the calling thread runs now; 0 where that is unknown. A system
/// call: for start-up, not for the fast path.
int numa_node_of_this_thread();

/// Asks for the pages of [memory, memory+bytes) on `node`, those not touched yet above all; never binds strictly.
/// `memory` is page-aligned. An out-of-range node is an error, a refusal by the system is not.
Status bind_memory_near(void* memory, std::size_t bytes, int node);

/// Binds the calling thread, which must be the library's own, to the cores of `node`.
Status bind_worker_near(int node);

}  // namespace pkcomm::topology
