// pkcomm-perf: how NCCL is looked for, and what is said where it is not.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "pkcomm-perf/nccl_library.hpp"
#include "support/catch.hpp"

using namespace pkcomm::perf;
using pkcomm::test::contains_text;

TEST_CASE("an NCCL that is not there is named, with the ways to name another", "[unit][perf]") {
  const Result<std::unique_ptr<NcclLibrary>> nccl = NcclLibrary::open("/nonexistent/libnccl.so.2");
  REQUIRE_FALSE(nccl.ok());
  CHECK_THAT(nccl.error().text, contains_text("/nonexistent/libnccl.so.2"));
  CHECK_THAT(nccl.error().text, contains_text("--nccl-lib"));
  CHECK_THAT(nccl.error().text, contains_text("PKCOMM_PERF_NCCL"));
}

TEST_CASE("PKCOMM_PERF_NCCL is meant: nothing else is tried", "[unit][perf]") {
  REQUIRE(::setenv("PKCOMM_PERF_NCCL", "/nonexistent/mine.so", 1) == 0);
  const Result<std::unique_ptr<NcclLibrary>> nccl = NcclLibrary::open("");
  ::unsetenv("PKCOMM_PERF_NCCL");
  REQUIRE_FALSE(nccl.ok());
  CHECK_THAT(nccl.error().text, contains_text("/nonexistent/mine.so"));
  CHECK_THAT(nccl.error().text, !contains_text("libnccl"));
}

TEST_CASE("a library that is no NCCL is refused by the first function that it lacks", "[unit][perf]") {
  const Result<std::unique_ptr<NcclLibrary>> nccl = NcclLibrary::open("libm.so.6");
  REQUIRE_FALSE(nccl.ok());
  CHECK_THAT(nccl.error().text, contains_text("lacks ncclGetVersion"));
}

TEST_CASE("the wheel of NCCL is found beside the interpreter", "[unit][perf]") {
  namespace fs = std::filesystem;
  char name[] = "/tmp/pkcomm-test-XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  const fs::path root = name;
  const fs::path library = root / "lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2";
  fs::create_directories(library.parent_path());
  fs::create_directories(root / "bin");
  std::ofstream(library).put('\n');
  const std::vector<std::string> found =
      nccl_in_python_packages("/nonexistent:" + (root / "bin").string() + ":");
  REQUIRE(found.size() == 1);
  CHECK(fs::equivalent(found.front(), library));
  fs::remove_all(root);
}

TEST_CASE("versions of NCCL are three numbers", "[unit][perf]") {
  CHECK(nccl_version_in_words(22809) == "2.28.9");
  CHECK(nccl_version_in_words(23203) == "2.32.3");
}
