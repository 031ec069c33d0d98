// pkcomm-info as its users run it: text, JSON, without a GPU, and with two that tests/fake_gpus stands in for.
#include <nlohmann/json.hpp>

#include "perf_program.hpp"

using namespace pkcomm::test;

namespace {

using Json = nlohmann::json;

/// What a run prints; it must succeed, and say nothing on standard error.
std::string told(const std::string& words, Environment environment) {
  environment.emplace("PKCOMM_PLATFORM", "host");
  PerfRun run(words, environment, "pkcomm-info");
  CHECK(run.wait() == 0);
  CHECK(run.err() == "");
  return run.out();
}
Json document(const Environment& environment) { return Json::parse(told("--json", environment)); }

Environment two_gpus() {
  return {{"LD_LIBRARY_PATH", program_path("../fake_gpus")}, {"CUDA_VISIBLE_DEVICES", "0,1"}};
}
/// CUDA shows none, whatever the machine has.
Environment no_gpu() { return {{"CUDA_VISIBLE_DEVICES", ""}}; }

/// The names of an object, joined.
std::string names(const Json& object) {
  std::string text;
  for (const auto& [name, value] : object.items()) text += name + " ";
  return text;
}

}  // namespace

TEST_CASE("pkcomm-info describes the host platform without a GPU", "[integration][info]") {
  const std::string text = told("", no_gpu());
  CHECK_THAT(text, contains_text("platform      host"));
  CHECK_THAT(text, contains_text("multicast     off: the host platform has no switch"));
  CHECK_THAT(text, contains_text("no GPU: "));
  CHECK_THAT(text, contains_text("NUMA 0 "));
}

TEST_CASE("pkcomm-info's JSON has every field of its schema", "[integration][info]") {
  const Json all = document(GENERATE(no_gpu(), two_gpus()));
  CHECK(all["schema"] == 1);
  CHECK(names(all) == "cuda gpus host multicast nvml pairs pkcomm schema variables ");
  CHECK(names(all["pkcomm"]) == "granularity_bytes platform platform_error tuning tuning_note version ");
  CHECK(names(all["multicast"]) == "reason switch switches used ");
  CHECK(names(all["host"]) == "allowed_cores cores cpu error machine name numa_nodes ");
  CHECK(names(all["cuda"]) == "error version visible_devices ");
  CHECK(names(all["nvml"]) == "driver error ");
  CHECK(all["pkcomm"]["platform"] == "host");
  CHECK(all["pkcomm"]["granularity_bytes"] > 0);
  CHECK(all["host"]["cores"] >= all["host"]["allowed_cores"]);
  CHECK(all["host"]["numa_nodes"].size() >= 1);
  for (const Json& gpu : all["gpus"]) {
    CHECK(names(gpu) ==
          "arch copy_engines fabric_handles memory_bytes multicast_supported name numa_node nvlinks pci pcie "
          "posix_handles sms uuid ");
  }
  for (const Json& variable : all["variables"]) {
    CHECK(names(variable) == "allowed default meaning name origin refused value ");
  }
}

TEST_CASE("pkcomm-info names GPUs, links and access as the driver does", "[integration][info]") {
  const Json all = document(two_gpus());
  CHECK(all["cuda"]["error"].is_null());
  CHECK(all["cuda"]["version"] == 13000);
  CHECK(all["cuda"]["visible_devices"] == "0,1");
  CHECK(all["nvml"]["driver"] == "580.1.2");
  REQUIRE(all["gpus"].size() == 2);
  const Json gpu = all["gpus"][1];
  CHECK(gpu["name"] == "NVIDIA H200");
  CHECK(gpu["arch"] == "sm_90");
  CHECK(gpu["sms"] == 132);
  CHECK(gpu["memory_bytes"] == std::uint64_t{141} << 30);
  CHECK(gpu["uuid"] == "GPU-0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b");
  CHECK(gpu["pci"] == "0000:0B:00.0");
  CHECK(gpu["multicast_supported"] == true);
  CHECK(gpu["nvlinks"]["active"] == 4);
  CHECK(gpu["nvlinks"]["to_switches"] == 3);
  CHECK(gpu["nvlinks"]["mb_per_s"] == 26562);
  CHECK(gpu["pcie"]["generation"] == 1);
  CHECK(gpu["pcie"]["most_generation"] == 5);
  REQUIRE(all["pairs"].size() == 2);
  for (const Json& pair : all["pairs"]) {
    CHECK(pair["path"] == "nvswitch");
    CHECK(pair["peer_access"] == true);
    CHECK(pair["native_atomics"] == (pair["from"] == 0));
  }
  const std::string text = told("", two_gpus());
  CHECK_THAT(text, contains_text("CUDA          13.0, driver 580.1.2, CUDA_VISIBLE_DEVICES=0,1\n"));
  CHECK_THAT(text, contains_text("GPU 1       NVIDIA H200, sm_90, 132 SMs, 141 GiB, 3 copy engines\n"));
  CHECK_THAT(text, contains_text("4 NVLinks (version 4) of 26.6 GB/s, 3 to switches\n"));
  CHECK_THAT(text, contains_text("!: no atomic operations on the peer's memory\n"));
}

TEST_CASE("pkcomm-info says why a driver that is there gives no GPU", "[integration][info]") {
  Environment environment = two_gpus();
  environment["FAKE_CUDA_ERROR"] = "100";
  CHECK_THAT(told("", environment), contains_text("no GPU: cuInit: no CUDA-capable device is detected"));
  const Json all = document(environment);
  CHECK(all["gpus"].empty());
  CHECK(all["cuda"]["error"] == "cuInit: no CUDA-capable device is detected");
}

TEST_CASE("pkcomm-info names the switch that forbids multicast objects", "[integration][info]") {
  Environment environment = no_gpu();
  for (const char* const name :
       {"PKCOMM_MULTICAST", "NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS"}) {
    environment[name] = std::string(name) == "NCCL_NVLS_ENABLE"   ? "1"
                        : std::string(name) == "PKCOMM_MULTICAST" ? "auto"
                                                                  : "0";
  }
  CHECK(document(environment)["multicast"]["switch"].is_null());
  environment["NVSHMEM_DISABLE_NVLS"] = "1";
  CHECK(document(environment)["multicast"]["switch"] == "NVSHMEM_DISABLE_NVLS=1");
  environment["NCCL_NVLS_ENABLE"] = "0";
  const Json multicast = document(environment)["multicast"];
  CHECK(multicast["switch"] == "NCCL_NVLS_ENABLE=0");
  CHECK(multicast["used"] == false);
  CHECK(multicast["switches"]["NVSHMEM_DISABLE_NVLS"] == "1");
  environment["PKCOMM_MULTICAST"] = "off";
  CHECK_THAT(told("", environment), contains_text("forbidden by PKCOMM_MULTICAST=off\n"));
}

TEST_CASE("pkcomm-info tells a variable's value, origin and refusal", "[integration][info]") {
  Environment environment = no_gpu();
  environment["PKCOMM_STAGING"] = "128M";
  environment["PKCOMM_SPIN_US"] = "soon";
  const std::string text = told("", environment);
  CHECK_THAT(text, contains_text("PKCOMM_STAGING=128M (environment)\n"));
  CHECK_THAT(text, contains_text("refused: PKCOMM_SPIN_US=\"soon\": not a whole number"));
  CHECK_THAT(told("--variables", environment), contains_text("PKCOMM_HEAP_SIZE=16G (default)\n"));
  for (const Json& variable : document(environment)["variables"]) {
    if (variable["name"] == "PKCOMM_STAGING") {
      CHECK(variable["value"] == "128M");
      CHECK(variable["origin"] == "environment");
      CHECK(variable["default"] == "64M");
    }
    if (variable["name"] == "PKCOMM_SPIN_US") {
      CHECK(variable["origin"] == "default");
      CHECK(variable["value"].is_null());
      CHECK_FALSE(variable["refused"].is_null());
    }
  }
}

TEST_CASE("pkcomm-info names a platform that is not here, and goes on", "[integration][info]") {
  Environment environment = no_gpu();
  environment["PKCOMM_PLATFORM"] = "cuda";
  const Json all = document(environment);
  if (all["pkcomm"]["platform"].is_null()) {
    CHECK_FALSE(all["pkcomm"]["platform_error"].is_null());
    CHECK(all["variables"].size() > 10);
  }
}

TEST_CASE("pkcomm-info refuses what it does not know in one line", "[integration][info]") {
  PerfRun run("--jsn", {}, "pkcomm-info");
  CHECK(run.wait() == 2);
  CHECK(run.out() == "");
  CHECK_THAT(run.err(), contains_text("pkcomm-info: ") && contains_text("--help"));
}
