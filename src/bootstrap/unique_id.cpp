// Both listeners exist before the id does, so that no rank can come too early.
#include "bootstrap/unique_id.hpp"

#include <netinet/in.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "bootstrap/interfaces.hpp"
#include "bootstrap/process.hpp"
#include "bootstrap/rendezvous.hpp"

namespace pkcomm::bootstrap {
namespace {

constexpr std::uint64_t kIdMagic = 0x64696d6d6f636b70;  // "pkcommid"
constexpr std::uint32_t kIdVersion = 1;

void set_address(IdContent& id, const sockaddr_storage& address) {
  id.family = address.ss_family;
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    id.port = ntohs(v4.sin_port);
    std::memcpy(id.address, &v4.sin_addr, sizeof(v4.sin_addr));
  } else {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof(v6));
    id.port = ntohs(v6.sin6_port);
    id.scope = v6.sin6_scope_id;
    std::memcpy(id.address, &v6.sin6_addr, sizeof(v6.sin6_addr));
  }
}

/// A machine without a usable address is no error: its ranks meet at the Unix socket.
Result<Listener> listen_by_tcp(IdContent& id) {
  const std::string rule = environment::get_if_set<environment::Var::kSocketIfname>().value_or(std::string());
  PK_ASSIGN(std::optional<Interface> interface, choose_interface(list_interfaces(), rule));
  if (!interface) return Listener();
  Result<Listener> listener = Listener::tcp(interface->address, interface->address_bytes);
  if (!listener.ok()) {
    log(LogLevel::kInfo, "start-up: no TCP on " + interface->name + ": " + listener.status().message());
    return Listener();
  }
  set_address(id, interface->address);
  return listener;
}

}  // namespace

Result<pkcommUniqueId> create_unique_id(std::int64_t unused_ms) {
  IdContent id = {};
  id.magic = kIdMagic;
  id.version = kIdVersion;
  id.nonce = random_nonce();
  id.creator = process_nonce();
  id.creator_pid = ::getpid();
  id.name = random_nonce().words[0];
  Rendezvous::Listeners listeners;
  PK_ASSIGN(listeners.local, Listener::unix_named(id.name));
  PK_ASSIGN(listeners.tcp, listen_by_tcp(id));
  PK_TRY(Rendezvous::open(id.nonce, std::move(listeners), unused_ms));
  id.checksum = checksum(&id, offsetof(IdContent, checksum));
  pkcommUniqueId result = {};
  std::memcpy(result.internal, &id, sizeof(id));
  return result;
}

Result<IdContent> parse_unique_id(const pkcommUniqueId& id) {
  IdContent content;
  std::memcpy(&content, id.internal, sizeof(content));
  if (content.magic != kIdMagic) {
    return Status(pkcommInvalidArgument,
                  "the unique id is none: it was not made by pkcommGetUniqueId, or not copied whole");
  }
  if (content.version != kIdVersion) {
    return Status(pkcommInvalidArgument, "the unique id is of version " + std::to_string(content.version) +
                                             ", this library reads version " + std::to_string(kIdVersion));
  }
  if (content.checksum != checksum(&content, offsetof(IdContent, checksum))) {
    return Status(pkcommInvalidArgument, "the unique id is damaged: all of its " +
                                             std::to_string(sizeof(pkcommUniqueId)) +
                                             " bytes must be copied");
  }
  return content;
}

Status validate(const pkcommUniqueId& id) { return parse_unique_id(id).status(); }

}  // namespace pkcomm::bootstrap
