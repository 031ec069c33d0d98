// pkcomm-perf: which launcher started it, seen from the environment alone.
#include <map>
#include <string>

#include "pkcomm-perf/launcher.hpp"
#include "pkcomm-perf/types.hpp"
#include "support/catch.hpp"

using namespace pkcomm::perf;
using pkcomm::test::contains_text;

namespace {

using Variables = std::map<std::string, std::string>;

constexpr int kParent = 4711;

Result<Launch> launch(const Variables& variables, const char* wanted = "auto") {
  return find_launch(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::string() : found->second;
      },
      wanted, kParent);
}

const Variables kMpirun = {
    {"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_MCA_ess_base_jobid", "99"}};
const Variables kSrun = {
    {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}};
const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "none"}};

}  // namespace

TEST_CASE("C48 the environment of each launcher gives rank, size and job", "[unit][perf]") {
  struct Row {
    const char* launcher;
    Variables variables;
    int process;
  };
  const auto row = GENERATE(values<Row>({
      {"mpirun", kMpirun, 2},
      {"srun", kSrun, 1},
      {"torchrun", kTorchrun, 3},
  }));
  CAPTURE(row.launcher);
  for (const char* wanted : {"auto", row.launcher}) {
    const Result<Launch> found = launch(row.variables, wanted);
    REQUIRE(found.ok());
    CHECK(found.value().launcher == row.launcher);
    CHECK(found.value().process == row.process);
    CHECK(found.value().processes == 4);
    CHECK_FALSE(found.value().job.empty());
    CHECK(found.value().warning.empty());
  }
  CHECK(launch(row.variables, "none").value().processes == 1);
}

TEST_CASE("C48 different starts have different jobs", "[unit][perf]") {
  Variables second = kSrun;
  second["SLURM_STEP_ID"] = "1";
  CHECK(launch(kSrun).value().job != launch(second).value().job);
  Variables other_port = kTorchrun;
  other_port["MASTER_PORT"] = "29501";
  CHECK(launch(kTorchrun).value().job != launch(other_port).value().job);
  Variables restarted = kTorchrun;
  restarted["TORCHELASTIC_RESTART_COUNT"] = "1";
  CHECK(launch(kTorchrun).value().job != launch(restarted).value().job);
}

TEST_CASE("C48 without a job id the common parent serves", "[unit][perf]") {
  Variables variables = kMpirun;
  variables.erase("OMPI_MCA_ess_base_jobid");
  CHECK_THAT(launch(variables).value().job, contains_text(std::to_string(kParent)));
}

TEST_CASE("C48 a launcher's size without a rank that can be joined warns", "[unit][perf]") {
  const auto variables = GENERATE(values<Variables>({
      {{"OMPI_COMM_WORLD_SIZE", "4"}},
      {{"WORLD_SIZE", "4"}, {"RANK", "1"}},
      {{"PMI_SIZE", "4"}, {"PMI_RANK", "1"}},
      {{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "4294967291"}},
  }));
  const Result<Launch> found = launch(variables);
  REQUIRE(found.ok());
  CHECK(found.value().processes == 1);
  CHECK_THAT(found.value().warning, contains_text("=4"));
}

TEST_CASE("nothing is said where nobody launched", "[unit][perf]") {
  CHECK(launch({}).value().warning.empty());
  CHECK(launch({{"WORLD_SIZE", "1"}}).value().warning.empty());
}

TEST_CASE("nonsense from a launcher is refused with the variable's name", "[unit][perf]") {
  for (const char* rank : {"4", "-1", "x", "2 ", "99999999999"}) {
    Variables variables = kMpirun;
    variables["OMPI_COMM_WORLD_RANK"] = rank;
    const Result<Launch> found = launch(variables);
    REQUIRE_FALSE(found.ok());
    CHECK_THAT(found.error().text, contains_text("OMPI_COMM_WORLD_RANK"));
  }
  CHECK_FALSE(launch({}, "mpirun").ok());
}

TEST_CASE("types are known by the names of nccl-tests and by common ones", "[unit][perf]") {
  CHECK(find_type("half").value() == pkcommFloat16);
  CHECK(find_type("fp16").value() == pkcommFloat16);
  CHECK(find_type("float").value() == pkcommFloat32);
  CHECK(find_type("bfloat16").value() == pkcommBfloat16);
  CHECK(find_type("f8e4m3").value() == pkcommFloat8e4m3);
  for (const DataType& type : kDataTypes) CHECK(find_type(type.name).value() == type.value);
  for (const char* wrong : {"", " ", "float ", "flo", "fp16 f16"}) CHECK_FALSE(find_type(wrong).ok());
  CHECK(find_op("mulsum").value() == Op::kMulSum);
  CHECK_FALSE(find_op("summ").ok());
}
