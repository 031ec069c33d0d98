// Who this process is to its peers: a name that no other has, and where it can be reached.
#pragma once

#include <cstdint>

#include "bootstrap/nonce.hpp"

namespace pkcomm::bootstrap {

/// Names this process; drawn at first use, and anew after a fork.
Nonce process_nonce();

/// Equal for two processes that can reach each other's abstract Unix sockets: same running kernel and same network
/// namespace. 0 where that cannot be told. For words and early errors, never as proof.
std::uint64_t place_of_process();

}  // namespace pkcomm::bootstrap
