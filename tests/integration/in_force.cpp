// The library's own answers to what is in force: platform properties and variables.
#include <cstring>
#include <set>
#include <string>

#include "support/world.hpp"

using namespace pkcomm::test;

namespace {

pkcommVariable_t variable_of(const std::string& name) {
  int count = 0;
  REQUIRE(pkcommGetVariableCount(&count) == pkcommSuccess);
  for (int i = 0; i < count; ++i) {
    pkcommVariable_t variable{};
    variable.size = sizeof variable;
    REQUIRE(pkcommGetVariable(i, &variable) == pkcommSuccess);
    if (variable.name == name) return variable;
  }
  FAIL("no variable " << name);
  return {};
}

}  // namespace

TEST_CASE("every variable has a name, a meaning and what is allowed", "[integration][in_force]") {
  int count = 0;
  REQUIRE(pkcommGetVariableCount(&count) == pkcommSuccess);
  std::set<std::string> names;
  for (int i = 0; i < count; ++i) {
    pkcommVariable_t variable{};
    variable.size = sizeof variable;
    REQUIRE(pkcommGetVariable(i, &variable) == pkcommSuccess);
    CAPTURE(variable.name);
    CHECK(std::strncmp(variable.name, "PKCOMM_", 7) == 0);
    CHECK(names.insert(variable.name).second);
    CHECK(std::strlen(variable.meaning) > 10);
    CHECK(std::strlen(variable.allowed) > 0);
  }
}

TEST_CASE("a variable's value comes from the environment, or from the library", "[integration][in_force]") {
  {
    const Environment set(std::map<std::string, std::string>{{"PKCOMM_STAGING", "3M"}});
    const pkcommVariable_t variable = variable_of("PKCOMM_STAGING");
    CHECK(variable.origin == pkcommOriginEnvironment);
    CHECK(std::string(variable.value) == "3M");
    CHECK(std::string(variable.refused) == "");
  }
  {
    const Environment set(std::map<std::string, std::string>{{"PKCOMM_STAGING", "lots"}});
    const pkcommVariable_t variable = variable_of("PKCOMM_STAGING");
    CHECK(variable.origin == pkcommOriginDefault);
    CHECK(std::string(variable.value) == variable.otherwise);
    CHECK_THAT(variable.refused, contains_text("PKCOMM_STAGING=\"lots\""));
  }
}

TEST_CASE("answers go no further than the caller's structure", "[integration][in_force]") {
  pkcommVariable_t variable;
  std::memset(&variable, 0x5a, sizeof variable);
  variable.size = offsetof(pkcommVariable_t, origin);
  REQUIRE(pkcommGetVariable(0, &variable) == pkcommSuccess);
  CHECK(std::string(variable.name) == "PKCOMM_PLATFORM");
  CHECK(variable.value[0] == 0x5a);
  pkcommPlatformProperties_t properties;
  std::memset(&properties, 0x5a, sizeof properties);
  properties.size = offsetof(pkcommPlatformProperties_t, multicast);
  REQUIRE(pkcommGetPlatformProperties(&properties) == pkcommSuccess);
  CHECK(properties.multicast == 0x5a5a5a5a);
  CHECK(properties.platform[0] != 0x5a);
}

TEST_CASE("the platform's properties agree with a communicator's", "[integration][in_force]") {
  pkcommPlatformProperties_t platform{};
  platform.size = sizeof platform;
  REQUIRE(pkcommGetPlatformProperties(&platform) == pkcommSuccess);
  CHECK(platform.granularity_bytes > 0);
  CHECK(std::string(platform.tuning) != "");
  pkcommComm_t comm = nullptr;
  REQUIRE(pkcommCommInitAll(&comm, 1, nullptr) == pkcommSuccess);
  pkcommCommProperties_t own{};
  own.size = sizeof own;
  REQUIRE(pkcommCommGetProperties(comm, &own) == pkcommSuccess);
  CHECK(std::string(own.platform) == platform.platform);
  CHECK(own.multicast == platform.multicast);
  CHECK(std::string(own.multicast_reason) == platform.multicast_reason);
  CHECK(pkcommCommDestroy(comm) == pkcommSuccess);
}

TEST_CASE("questions without sense are refused", "[integration][in_force]") {
  int count = 0;
  REQUIRE(pkcommGetVariableCount(&count) == pkcommSuccess);
  pkcommVariable_t variable{};
  CHECK(pkcommGetVariable(0, &variable) == pkcommInvalidArgument);  // no size
  variable.size = sizeof variable;
  CHECK(pkcommGetVariable(-1, &variable) == pkcommInvalidArgument);
  CHECK(pkcommGetVariable(count, &variable) == pkcommInvalidArgument);
  CHECK_THAT(pkcommGetLastError(nullptr), contains_text("allowed: 0.." + std::to_string(count - 1)));
  CHECK(pkcommGetVariable(0, nullptr) == pkcommInvalidArgument);
  CHECK(pkcommGetVariableCount(nullptr) == pkcommInvalidArgument);
  CHECK(pkcommGetPlatformProperties(nullptr) == pkcommInvalidArgument);
}
