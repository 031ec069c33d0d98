// Only the list of switches is this program's: the library tells which one decides, not what the others say.
#include "library.hpp"

#include <cstdlib>

#include "pkcomm/pkcomm.h"

namespace pkcomm::info {

namespace {

constexpr const char* kSwitches[] = {"PKCOMM_MULTICAST", "NCCL_NVLS_ENABLE",
                                     "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS"};

std::string version_text() {
  int version = 0;
  pkcommGetVersion(&version);
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::vector<Variable> variables() {
  std::vector<Variable> all;
  int count = 0;
  pkcommGetVariableCount(&count);
  for (int i = 0; i < count; ++i) {
    pkcommVariable_t given{};
    given.size = sizeof given;
    if (pkcommGetVariable(i, &given) != pkcommSuccess) continue;
    Variable& variable = all.emplace_back();
    variable.name = given.name;
    variable.value = given.value;
    variable.otherwise = given.otherwise;
    variable.allowed = given.allowed;
    variable.meaning = given.meaning;
    variable.refused = given.refused;
    variable.from_environment = given.origin == pkcommOriginEnvironment;
  }
  return all;
}

}  // namespace

Library ask_library() {
  Library library;
  library.version = version_text();
  library.variables = variables();
  for (const char* const name : kSwitches) {
    const char* const value = std::getenv(name);
    library.switches.push_back({name, value == nullptr ? std::nullopt : std::optional<std::string>(value)});
  }
  pkcommPlatformProperties_t properties{};
  properties.size = sizeof properties;
  if (pkcommGetPlatformProperties(&properties) != pkcommSuccess) {
    library.failure = pkcommGetLastError(nullptr);
    return library;
  }
  library.platform = properties.platform;
  library.granularity_bytes = properties.granularity_bytes;
  library.tuning = properties.tuning;
  library.tuning_note = properties.tuning_note;
  library.multicast = properties.multicast != 0;
  library.multicast_reason = properties.multicast_reason;
  library.multicast_switch = properties.multicast_switch;
  return library;
}

}  // namespace pkcomm::info
