// Which address of this machine the TCP listener of a rendezvous takes. The rules of PKCOMM_SOCKET_IFNAME are
// NCCL's: a comma-separated list of name prefixes; '=' in front makes the names exact; '^' in front excludes them
// ("^=" both).
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace pkcomm::bootstrap {

/// One address of one interface that is up.
struct Interface {
  std::string name;
  bool loopback = false;
  sockaddr_storage address = {};
  socklen_t address_bytes = 0;
};

/// IPv4 and IPv6 addresses of the interfaces that are up; empty where the system does not tell.
std::vector<Interface> list_interfaces();

/// The address to listen on, or nothing where there is none. `rule` empty: the first interface that is neither
/// loopback nor made by docker, else the first docker one, else loopback; of an interface IPv4 goes before IPv6, and
/// IPv6 with a scope comes last. A rule that leaves none is pkcommInvalidUsage, with the names found. Pure.
Result<std::optional<Interface>> choose_interface(const std::vector<Interface>& interfaces,
                                                  std::string_view rule);

/// "10.0.0.2" or "fe80::1"; for messages.
std::string address_text(const sockaddr_storage& address);

}  // namespace pkcomm::bootstrap
