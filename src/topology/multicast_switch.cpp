// Reads the environment at every call: it is asked once a communicator, and tests change it.
#include "topology/multicast_switch.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

#include "base/environment.hpp"

namespace pkcomm::topology {
namespace {

struct Switch {
  const char* variable;
  std::string_view off;
};
constexpr std::array<Switch, 3> kOfPeers = {{
    {"NCCL_NVLS_ENABLE", "0"},
    {"TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"},
    {"NVSHMEM_DISABLE_NVLS", "1"},
}};

}  // namespace

std::string multicast_switched_off() {
  using environment::Var;
  if (environment::get<Var::kMulticast>() == environment::MulticastChoice::kOff)
    return "PKCOMM_MULTICAST=off";
  for (const Switch& known : kOfPeers) {
    const char* const value = std::getenv(known.variable);
    if (value != nullptr && value == known.off) return std::string(known.variable) + "=" + value;
  }
  return {};
}

}  // namespace pkcomm::topology
