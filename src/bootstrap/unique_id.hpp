// The 128 bytes that name a communicator before it exists: who made it, where its listener is, and the secret that
// tells its ranks from strays. Making one starts the listener (rendezvous.hpp) in this process.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "bootstrap/nonce.hpp"

namespace pkcomm::bootstrap {

/// The content of a pkcommUniqueId. Every field is plain bytes in the host's order: ranks share one machine.
struct IdContent {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint16_t family;       ///< AF_INET, AF_INET6, or 0 where there is no TCP listener
  std::uint16_t port;         ///< TCP port, host order
  Nonce nonce;                ///< secret: known to the ranks alone
  Nonce creator;              ///< process nonce of the process that listens
  std::uint64_t name;         ///< of the Unix socket; not derived from the nonce, since names are public
  std::int64_t creator_pid;   ///< as that process sees itself; for messages
  unsigned char address[16];  ///< IPv4 in the first 4 bytes, or IPv6
  std::uint32_t scope;        ///< interface index of a link-local IPv6 address
  std::uint32_t reserved;
  std::uint64_t checksum;  ///< of everything before it
};
static_assert(sizeof(IdContent) == 96 && sizeof(IdContent) <= sizeof(pkcommUniqueId));

/// Makes an id and starts listening for its ranks. The listener ends when all ranks have joined, when start-up has
/// failed, or after `unused_ms` in which nobody came. Errors: pkcommInvalidUsage (PKCOMM_SOCKET_IFNAME,
/// PKCOMM_RUNTIME_DIR), pkcommSystemError.
Result<pkcommUniqueId> create_unique_id(std::int64_t unused_ms = 10 * 60 * 1000);

/// pkcommInvalidArgument unless `id` came from create_unique_id of this version.
Status validate(const pkcommUniqueId& id);

/// The content of a valid id. Pure.
Result<IdContent> parse_unique_id(const pkcommUniqueId& id);

}  // namespace pkcomm::bootstrap
