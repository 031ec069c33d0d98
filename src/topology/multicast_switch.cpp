// Reads the environment at every call: it is asked once a communicator, and tests change it. A peer's variable counts as its
// owner reads it, and in doubt as switching off.
#include "topology/multicast_switch.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

#include "base/environment.hpp"
#include "base/text.hpp"

namespace pkcomm::topology {
namespace {

struct Switch {
  const char* variable;
  bool off_by_no;  // else by anything but no
};
constexpr std::array<Switch, 3> kOfPeers = {{
    {"NCCL_NVLS_ENABLE", true},
    {"TORCH_SYMM_MEM_DISABLE_MULTICAST", false},
    {"NVSHMEM_DISABLE_NVLS", false},
}};

bool means_no(std::string_view text) {
  const std::string word = lower_case(text);
  if (const auto number = parse_integer(word); number.ok()) return number.value() == 0;
  return word == "off" || word == "no" || word == "false" || word == "n" || word == "f";
}

bool is_off(const Switch& known, std::string_view text) {
  return !text.empty() && means_no(text) == known.off_by_no;
}

}  // namespace

std::string multicast_switched_off() {
  using environment::Var;
  if (environment::get<Var::kMulticast>() == environment::MulticastChoice::kOff)
    return "PKCOMM_MULTICAST=off";
  for (const Switch& known : kOfPeers) {
    const char* const value = std::getenv(known.variable);
    if (value != nullptr && is_off(known, trim(value))) return std::string(known.variable) + "=" + value;
  }
  return {};
}

}  // namespace pkcomm::topology
