// pkcomm-perf under launchers: copies that differ in their environment alone find each other; copies that
// cannot say so.
#include <memory>
#include <set>

#include "perf_program.hpp"

using namespace pkcomm::test;

namespace {

constexpr int kCopies = 4;

Environment environment_of(const std::string& launcher, int rank) {
  const std::string own = std::to_string(rank);
  const std::string all = std::to_string(kCopies);
  if (launcher == "mpirun") {
    return {{"OMPI_COMM_WORLD_RANK", own},
            {"OMPI_COMM_WORLD_SIZE", all},
            {"OMPI_MCA_ess_base_jobid", "test" + std::to_string(getpid())}};
  }
  if (launcher == "srun") {
    return {{"SLURM_PROCID", own},
            {"SLURM_NTASKS", all},
            {"SLURM_JOB_ID", "test" + std::to_string(getpid())},
            {"SLURM_STEP_ID", "0"}};
  }
  return {{"RANK", own},
          {"WORLD_SIZE", all},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", "test" + std::to_string(getpid())}};
}

}  // namespace

TEST_CASE("C48 four copies under a launcher become four ranks", "[integration][perf][C48]") {
  const std::string launcher = GENERATE("mpirun", "srun", "torchrun");
  const std::string own_ranks = GENERATE("-g 1", "-g 2 -t 2");
  CAPTURE(launcher, own_ranks);
  std::vector<std::unique_ptr<PerfRun>> copies;
  for (int rank = kCopies - 1; rank >= 0; --rank) {  // rank 0 last: the others must wait for it
    copies.push_back(std::make_unique<PerfRun>("all_reduce " + own_ranks + " -b 8 -e 1K -f 4 -n 2",
                                               environment_of(launcher, rank)));
  }
  for (const auto& copy : copies) CHECK(copy->wait() == 0);
  for (const auto& copy : copies) CHECK(copy->err().empty());
  for (std::size_t i = 0; i + 1 < copies.size(); ++i) CHECK(copies[i]->out().empty());

  const std::string out = copies.back()->out();
  const int ranks = own_ranks == "-g 1" ? kCopies : 4 * kCopies;
  std::set<std::string> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    char start[64];
    std::snprintf(start, sizeof start, "#  Rank %2d Group  0 Pid ", rank);
    const std::size_t at = out.find(start);
    REQUIRE(at != std::string::npos);
    std::istringstream words(out.substr(at + std::string(start).size()));
    std::string pid, on, host, device;
    int number = -1;
    words >> pid >> on >> host >> device >> number;
    pids.insert(pid);
    CHECK(device == "device");
    CHECK(number == rank);
  }
  CHECK(pids.size() == (own_ranks == "-g 1" ? 4u : 8u));
  for (const auto& words : copies.back()->rows()) CHECK(words[kWrongColumn] == "0");
}

TEST_CASE("C48 a missing copy is named within the time limit", "[integration][perf][C48]") {
  PerfRun run("all_reduce -b 8 -e 8 --join-timeout 1", environment_of("mpirun", 0));
  CHECK(run.wait() == 1);
  CHECK_THAT(run.err(), contains_text("did not hear from ranks 1, 2, 3"));
}

TEST_CASE("C48 copies meet at a given address", "[integration][perf][C48]") {
  const std::string port = std::to_string(20000 + getpid() % 10000);
  const std::string words = "all_reduce -b 8 -e 8 --rendezvous 127.0.0.1:" + port;
  Environment other = environment_of("srun", 1);
  other["SLURM_JOB_ID"] = "another";  // the address decides, not the job
  other["SLURM_NTASKS"] = "2";
  Environment first = environment_of("srun", 0);
  first["SLURM_NTASKS"] = "2";
  PerfRun second(words, other);
  PerfRun run(words, first);
  CHECK(run.wait() == 0);
  CHECK(second.wait() == 0);
  CHECK(run.rows().size() == 1);
}

TEST_CASE("C48 a launcher's size that this process cannot join warns", "[integration][perf][C48]") {
  const auto environment = GENERATE(values<Environment>({
      {{"OMPI_COMM_WORLD_SIZE", "4"}},
      {{"WORLD_SIZE", "4"}},
      {{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967291"}},
  }));
  PerfRun run("all_reduce -b 8 -e 8", environment);
  CHECK(run.wait() == 0);
  CHECK_THAT(run.err(), contains_text("warning: " + environment.begin()->first + "=4"));
}

TEST_CASE("C48 one rank has bus bandwidth 0, marked as without meaning", "[integration][perf][C48]") {
  PerfRun run("all_reduce,broadcast -b 1M -e 1M -n 2");
  CHECK(run.wait() == 0);
  CHECK(run.err().empty());
  REQUIRE(run.rows().size() == 2);
  for (const auto& words : run.rows()) CHECK(words[kBusbwColumn] == "0.00");
  CHECK_THAT(run.out(), contains_text("# 1 rank: nothing crosses a link, so busbw is 0 and has no meaning"));
}
