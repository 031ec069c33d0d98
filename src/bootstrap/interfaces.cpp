// getifaddrs(3) gives the list, one entry an address; the choice among them is a pure function.
#include "bootstrap/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/text.hpp"

namespace pkcomm::bootstrap {
namespace {

bool is_link_local(const Interface& interface) {
  if (interface.address.ss_family != AF_INET6) return false;
  sockaddr_in6 address;
  std::memcpy(&address, &interface.address, sizeof(address));
  return IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr);
}

/// Less is better.
int cost(const Interface& interface) {
  const bool docker = interface.name.starts_with("docker");
  return (interface.loopback ? 200 : docker ? 100 : 0) + (is_link_local(interface) ? 10 : 0);
}

bool listed(const std::string& name, std::string_view names, bool exact) {
  const auto parts = split(names, ',');
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return !part.empty() && (exact ? name == part : name.starts_with(part));
  });
}

std::string names_found(const std::vector<Interface>& interfaces) {
  std::string text;
  std::set<std::string> seen;
  for (const Interface& interface : interfaces) {
    if (!seen.insert(interface.name).second) continue;
    text += (text.empty() ? "" : ", ") + interface.name + " (" + address_text(interface.address) + ")";
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<Interface> list_interfaces() {
  std::vector<Interface> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Interface interface;
    interface.name = entry->ifa_name;
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    interface.address_bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&interface.address, entry->ifa_addr, interface.address_bytes);
    found.push_back(std::move(interface));
  }
  ::freeifaddrs(list);
  return found;
}

Result<std::optional<Interface>> choose_interface(const std::vector<Interface>& interfaces,
                                                  std::string_view rule) {
  std::string_view names = rule;
  const bool exclude = names.starts_with('^');
  if (exclude) names.remove_prefix(1);
  const bool exact = names.starts_with('=');
  if (exact) names.remove_prefix(1);

  const Interface* best = nullptr;
  for (const Interface& interface : interfaces) {
    if (!rule.empty() && listed(interface.name, names, exact) == exclude) continue;
    // The system lists interfaces by age; of equals the first stays, IPv4 before IPv6 of the same name.
    const bool better = best == nullptr || cost(interface) < cost(*best) ||
                        (interface.name == best->name && cost(interface) == cost(*best) &&
                         interface.address.ss_family == AF_INET && best->address.ss_family == AF_INET6);
    if (better) best = &interface;
  }
  if (best != nullptr) return std::optional<Interface>(*best);
  if (rule.empty()) return std::optional<Interface>();
  return Status(pkcommInvalidUsage,
                "PKCOMM_SOCKET_IFNAME=\"" + std::string(rule) +
                    "\" leaves no network interface; those up with an address: " + names_found(interfaces));
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof(v6));
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  }
  return text;
}

}  // namespace pkcomm::bootstrap
