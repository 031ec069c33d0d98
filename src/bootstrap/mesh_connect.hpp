// Makes the connections of a mesh at start-up: each process connects to those of lower index and accepts those of
// higher. Both ends prove that they know the communicator's nonce, so that a stray on an abstract name, which anybody
// on the machine may connect to, is dropped.
#pragma once

#include <atomic>
#include <vector>

#include "base/status.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/endpoint.hpp"
#include "bootstrap/nonce.hpp"
#include "bootstrap/private_fd.hpp"
#include "bootstrap/wire.hpp"

namespace pkcomm::bootstrap {

/// Gives a connection to each process of `table`, empty for `process` itself. Errors: pkcommTimeout (names who is
/// missing), pkcommRemoteError (a process died or gave up), pkcommAborted, pkcommSystemError.
Result<std::vector<PrivateFd>> connect_mesh(const Table& table, int process, const Nonce& nonce,
                                            const Listener& listener, Deadline deadline,
                                            const std::atomic<bool>* cancelled,
                                            const std::atomic<bool>* also_cancelled);

}  // namespace pkcomm::bootstrap
