// Loading of the CUDA driver: what is looked up, what its answers mean, which process may have it, and the choice of the
// platform that follows. On a fake driver.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <string>

#include "platform/cuda/cuda_platform.hpp"
#include "platform/cuda/driver.hpp"
#include "support/catch.hpp"
#include "support/coverage.hpp"
#include "support/fake_driver.hpp"

using namespace pkcomm;
using cuda::driver;
using test::contains_text;
using test::FakeDriver;

namespace {

/// Runs `body` in a forked child; whether it returned true.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool good = body();
    test::keep_coverage();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("cuda driver: each function of the list is looked up once, and no other", "[unit][cuda]") {
  const FakeDriver fake;
  REQUIRE(driver().ok());
  REQUIRE(driver().ok());
  std::map<std::string, int> expected;
#define PK_EXPECT(name, version, need) expected[#name] = 1;
  PK_CUDA_DRIVER_SYMBOLS(PK_EXPECT)
#undef PK_EXPECT
  CHECK(fake.lookups() == expected);
  CHECK(fake.faults().empty());
}

TEST_CASE("cuda driver: nothing of multicast objects is looked up", "[unit][cuda]") {
  const FakeDriver fake;
  REQUIRE(driver().ok());
  const auto platform = cuda::CudaPlatform::create(*driver().value());
  REQUIRE(platform.ok());
  REQUIRE(platform.value()->open_device(0).ok());
  REQUIRE_FALSE(fake.lookups().empty());
  for (const auto& [name, count] : fake.lookups()) {
    CAPTURE(name, count);
    CHECK(name.find("Multicast") == std::string::npos);
  }
}

TEST_CASE("cuda driver: one that lacks a function is refused, one that lacks an optional one is not",
          "[unit][cuda]") {
  SECTION("required") {
    const FakeDriver fake({.missing = {"cuMemCreate"}});
    REQUIRE_FALSE(driver().ok());
    CHECK(driver().status().code() == pkcommUnsupported);
    CHECK(driver().status().message() == "the CUDA driver has no cuMemCreate of CUDA 10.2");
    CHECK(fake.calls() == 0);  // not started either
  }
  SECTION("optional") {
    const FakeDriver fake({.missing = {"cuFuncLoad"}});
    REQUIRE(driver().ok());
    CHECK(driver().value()->cuFuncLoad == nullptr);
  }
  SECTION("optional, since the driver is older than the function") {
    const FakeDriver fake({.driver_version = 12020});
    REQUIRE(driver().ok());
    CHECK(driver().value()->cuFuncLoad == nullptr);
    CHECK(driver().value()->version == 12020);
  }
}

TEST_CASE("cuda driver: a driver that cannot start says why", "[unit][cuda]") {
  struct Row {
    CUresult result;
    pkcommResult_t code;
    const char* text;
  };
  const auto row = GENERATE(values<Row>({
      {CUDA_ERROR_NO_DEVICE, pkcommUnsupported, "cuInit: CUDA_ERROR_NO_DEVICE"},
      {CUDA_ERROR_SYSTEM_NOT_READY, pkcommUnsupported, "cuInit: CUDA_ERROR_SYSTEM_NOT_READY"},
      {CUDA_ERROR_NOT_INITIALIZED, pkcommInvalidUsage, "forked"},
  }));
  const FakeDriver fake({.init_result = row.result});
  REQUIRE_FALSE(driver().ok());
  CHECK(driver().status().code() == row.code);
  CHECK_THAT(driver().status().message(), contains_text(row.text));
}

TEST_CASE("cuda driver: without a fake one there is libcuda, or the reason why not", "[unit][cuda]") {
  if (const auto real = driver(); real.ok()) {
    CHECK(real.value()->version >= 12000);
  } else {
    CHECK(real.status().code() == pkcommUnsupported);
    CHECK_FALSE(real.status().message().empty());
  }
}

TEST_CASE("cuda driver: a failed call's status has its code, its name and its values", "[unit][cuda]") {
  const FakeDriver fake;
  REQUIRE(driver().ok());
  CHECK(cuda::check(CUDA_SUCCESS, "cuMemCreate").ok());

  const Status memory =
      cuda::check(CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate", {{"device", 1}, {"bytes", std::size_t{4096}}});
  CHECK(memory.code() == pkcommOutOfMemory);
  CHECK(memory.message() ==
        "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (as the fake driver was told): device 1, bytes 4096");

  const void* const at = reinterpret_cast<const void*>(0x7f0000200000);
  const Status other =
      cuda::check(CUDA_ERROR_INVALID_VALUE, "cuMemMap", {{"address", at}, {"kernel", "all_reduce"}});
  CHECK(other.code() == pkcommCudaError);
  CHECK_THAT(other.message(), contains_text(": address 0x7f0000200000, kernel all_reduce"));

  CHECK(cuda::check(CUDA_ERROR_NOT_SUPPORTED, "cuMemCreate").code() == pkcommUnsupported);
  CHECK(cuda::check(CUDA_ERROR_ILLEGAL_STATE, "cuMemMap").message() ==
        "cuMemMap: CUDA error 401");  // the fake has no name for it
}

TEST_CASE("cuda driver: a process forked from one that has started CUDA does not get it", "[unit][cuda]") {
  const FakeDriver fake;
  SECTION("started before the fork") {
    REQUIRE(driver().ok());
    CHECK(in_child([&] {
      const auto refused = driver();
      return !refused.ok() && refused.status().code() == pkcommInvalidUsage &&
             refused.status().message().find("forked") != std::string::npos && fake.calls() == 2;
    }));
    CHECK(driver().ok());
  }
  SECTION("not started before the fork") {
    CHECK(in_child([] { return driver().ok(); }));
  }
}

TEST_CASE("the platform is CUDA where it is there or demanded, else the host", "[unit][cuda]") {
  struct Row {
    const char* why;
    const char* wanted;  // PKCOMM_PLATFORM
    CUresult init_result;
    int devices;
    pkcommResult_t code;
    PlatformKind kind;  // where `code` is success
    const char* text;   // else
  };
  const auto row = GENERATE(values<Row>({
      {"there is a device", "auto", CUDA_SUCCESS, 1, pkcommSuccess, PlatformKind::kCuda, ""},
      {"no device", "auto", CUDA_ERROR_NO_DEVICE, 0, pkcommSuccess, PlatformKind::kHost, ""},
      {"no device visible", "auto", CUDA_SUCCESS, 0, pkcommSuccess, PlatformKind::kHost, ""},
      {"CUDA is there but not for this process", "auto", CUDA_ERROR_NOT_INITIALIZED, 1, pkcommInvalidUsage,
       PlatformKind::kHost, "forked"},
      {"demanded and there", "cuda", CUDA_SUCCESS, 1, pkcommSuccess, PlatformKind::kCuda, ""},
      {"demanded in vain", "cuda", CUDA_ERROR_NO_DEVICE, 0, pkcommUnsupported, PlatformKind::kHost,
       "PKCOMM_PLATFORM=cuda: cuInit: CUDA_ERROR_NO_DEVICE"},
      {"not wanted", "host", CUDA_SUCCESS, 1, pkcommSuccess, PlatformKind::kHost, ""},
  }));
  CAPTURE(row.why);
  // In a child, since a process chooses once.
  CHECK(in_child([&] {
    setenv("PKCOMM_PLATFORM", row.wanted, 1);
    const FakeDriver fake({.devices = row.devices, .init_result = row.init_result});
    const auto platform = Platform::get();
    if (!platform.ok()) {
      return platform.status().code() == row.code &&
             platform.status().message().find(row.text) != std::string::npos;
    }
    return row.code == pkcommSuccess && platform.value()->kind() == row.kind &&
           Platform::get().value() == platform.value() &&
           (row.wanted != std::string("host") || fake.calls() == 0);
  }));
}
