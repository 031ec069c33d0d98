// Who started this process, and as which of how many: read from the environment of mpirun (Open MPI), srun
// and torchrun. No launcher's library is linked. `job` is a text that all processes of one start share and no
// other start has; the ranks find each other by it. Pure but for the parent's process id, which the caller
// passes.
#pragma once

#include <charconv>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "result.hpp"

namespace pkcomm::perf {

struct Launch {
  std::string launcher = "none";
  int process = 0;
  int processes = 1;
  std::string job;
  std::string warning;  // one sentence for stderr, or empty
};

/// Reads a variable; empty where it is unset.
using Environment = std::function<std::string(const char*)>;

namespace launcher_detail {

inline Result<int> number(const Environment& environment, const char* variable, int least, int most) {
  const std::string text = environment(variable);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    return Error{std::string(variable) + "='" + text + "': expected a number from " + std::to_string(least) +
                 " to " + std::to_string(most)};
  }
  return value;
}

inline std::string first_set(const Environment& environment, std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (std::string text = environment(variable); !text.empty()) return text;
  }
  return {};
}

inline Result<Launch> joined(const Environment& environment, std::string launcher, const char* rank_variable,
                             const char* size_variable, std::string job, int parent) {
  constexpr int kMostRanks = 1024;  // of a communicator
  Result<int> size = number(environment, size_variable, 1, kMostRanks);
  PERF_TRY(size);
  Result<int> rank = number(environment, rank_variable, 0, size.value() - 1);
  PERF_TRY(rank);
  // Without a job id the processes still have their parent in common, the launcher's daemon.
  if (job.empty()) job = "parent " + std::to_string(parent);
  return Launch{std::move(launcher), rank.value(), size.value(), std::move(job), {}};
}

/// SLURM gives the batch script itself a step id beyond this, and the variables of a rank; yet it is no rank.
inline bool is_slurm_task(const std::string& step) {
  unsigned long long id = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), id);
  constexpr unsigned long long kFirstSpecialStep = 0xFFFFFFF0;  // SLURM_MAX_NORMAL_STEP_ID of slurm.h
  return step.empty() || error != std::errc{} || id < kFirstSpecialStep;
}

}  // namespace launcher_detail

/// `wanted` is auto, none, mpirun, srun or torchrun; the latter three demand the launcher's variables.
inline Result<Launch> find_launch(const Environment& environment, std::string_view wanted, int parent) {
  namespace detail = launcher_detail;
  const auto set = [&](const char* variable) { return !environment(variable).empty(); };
  const auto asked = [&](std::string_view name) { return wanted == "auto" || wanted == name; };
  if (wanted == "none") return Launch{};

  // Innermost first: torchrun may run below srun, and mpirun within an allocation of SLURM.
  const bool torchrun =
      set("RANK") && set("WORLD_SIZE") && (set("MASTER_PORT") || set("TORCHELASTIC_RUN_ID"));
  if (torchrun && asked("torchrun")) {
    const std::string job = environment("MASTER_ADDR") + ":" + environment("MASTER_PORT") + " " +
                            environment("TORCHELASTIC_RUN_ID") + " " +
                            environment("TORCHELASTIC_RESTART_COUNT");
    return detail::joined(environment, "torchrun", "RANK", "WORLD_SIZE", job, parent);
  }
  if (set("OMPI_COMM_WORLD_RANK") && set("OMPI_COMM_WORLD_SIZE") && asked("mpirun")) {
    const std::string job = detail::first_set(
        environment, {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "OMPI_MCA_orte_ess_jobid"});
    return detail::joined(environment, "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", job, parent);
  }
  const std::string step = detail::first_set(environment, {"SLURM_STEP_ID", "SLURM_STEPID"});
  if (set("SLURM_PROCID") && set("SLURM_NTASKS") && detail::is_slurm_task(step) && asked("srun")) {
    const std::string id = detail::first_set(environment, {"SLURM_JOB_ID", "SLURM_JOBID"});
    const std::string job = id.empty() && step.empty() ? "" : id + "." + step;
    return detail::joined(environment, "srun", "SLURM_PROCID", "SLURM_NTASKS", job, parent);
  }
  if (wanted != "auto") {
    return Error{"--launcher " + std::string(wanted) + ": its variables for rank and size are not set"};
  }

  Launch alone;
  for (const char* variable :
       {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    if (const Result<int> size = detail::number(environment, variable, 2, 1 << 24); size.ok()) {
      alone.warning =
          std::string(variable) + "=" + std::to_string(size.value()) +
          ", but no launcher that pkcomm-perf can join (mpirun, srun, torchrun) gave this process a rank: "
          "it runs by itself, with the ranks of -g and -t alone";
      break;
    }
  }
  return alone;
}

}  // namespace pkcomm::perf
