// What is in force before there is a communicator: platform and variables.
#include <algorithm>
#include <cstring>

#include "api/boundary.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "comm/platform_properties.hpp"
#include "pkcomm/pkcomm.h"

using namespace pkcomm;

namespace {

// Rows that the library does not read stand at the end of the table.
constexpr int kVariables = [] {
  int count = 0;
  for (const environment::Description& row : environment::kTable) {
    if (row.kind != environment::Kind::kBuild) ++count;
  }
  return count;
}();
static_assert(environment::kTable[kVariables - 1].kind != environment::Kind::kBuild);

}  // namespace

extern "C" pkcommResult_t pkcommGetPlatformProperties(pkcommPlatformProperties_t* properties) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(properties != nullptr, "properties is null"));
    PK_TRY(api::require(properties->size >= sizeof(std::size_t), "properties->size is not set"));
    environment::warn_about_unknown_variables();
    return fill_platform_properties(*properties);
  });
}

extern "C" pkcommResult_t pkcommGetVariableCount(int* count) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(count != nullptr, "count is null"));
    *count = kVariables;
    return {};
  });
}

extern "C" pkcommResult_t pkcommGetVariable(int index, pkcommVariable_t* variable) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(variable != nullptr, "variable is null"));
    PK_TRY(api::require(variable->size >= sizeof(std::size_t), "variable->size is not set"));
    if (index < 0 || index >= kVariables) {
      return Status(pkcommInvalidArgument,
                    "index is " + std::to_string(index) + "; allowed: 0.." + std::to_string(kVariables - 1));
    }
    const environment::Description& row = environment::kTable[static_cast<std::size_t>(index)];
    const environment::InForce now = environment::in_force(row);
    pkcommVariable_t all{};
    all.size = variable->size;
    all.name = row.name.data();  // string literals, so terminated
    all.meaning = row.meaning.data();
    all.otherwise = row.fallback.data();
    all.origin = now.is_default ? pkcommOriginDefault : pkcommOriginEnvironment;
    copy_text(all.value, now.value);
    copy_text(all.allowed, environment::allowed_values(row));
    copy_text(all.refused, now.complaint);
    std::memcpy(variable, &all, std::min(variable->size, sizeof all));
    return {};
  });
}
