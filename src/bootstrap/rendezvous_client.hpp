// How a rank joins a rendezvous that another process holds: over one connection of its own, which ends with the
// answer.
#pragma once

#include <atomic>

#include "base/status.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/unique_id.hpp"
#include "bootstrap/wire.hpp"

namespace pkcomm::bootstrap {

/// Tries the id's Unix socket, then TCP, again and again until `deadline`; then waits for the outcome.
/// Errors besides an outcome: pkcommTimeout, pkcommRemoteError (the listener's process died), pkcommAborted.
Result<Outcome> join_elsewhere(const IdContent& id, Hello hello, Deadline deadline,
                               const std::atomic<bool>* cancelled);

}  // namespace pkcomm::bootstrap
