// One device stands for all: their names are compared at init, through the tuning tables that they lead to.
#include "comm/machine.hpp"

#include "topology/multicast_switch.hpp"

namespace pkcomm {

Topology machine_of(PlatformKind platform, const DeviceFacts& facts) {
  Topology machine = topology::detect_host();
  machine.platform = platform;
  if (platform == PlatformKind::kCuda) {
    machine.gpus.push_back({.name = facts.name, .arch = facts.arch, .sms = facts.sms});
    const std::string off = topology::multicast_switched_off();
    machine.multicast_off = off.empty() ? "this version uses unicast alone" : off;
  }
  return machine;
}

}  // namespace pkcomm
