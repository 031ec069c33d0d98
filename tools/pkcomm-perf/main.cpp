// pkcomm-perf: measures and checks pkcomm's collectives. This process reads the command line, finds out who
// else takes part, and starts the ranks; everything that touches a communicator happens in them.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "buffers.hpp"
#include "collectives.hpp"
#include "device.hpp"
#include "explain.hpp"
#include "launcher.hpp"
#include "options.hpp"
#include "rank_program.hpp"
#include "supervisor.hpp"

namespace pkcomm::perf {

namespace {

void print_list() {
  std::printf("collectives:");
  for (const Collective& collective : collectives()) std::printf(" %s", std::string(collective.name).c_str());
  std::printf("\ntypes:      ");
  for (const DataType& type : kDataTypes) std::printf(" %s", std::string(type.name).c_str());
  std::printf("\noperations: ");
  for (const std::string_view op : kOpNames) std::printf(" %s", std::string(op).c_str());
  std::printf("\n");
}

std::string from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : "";
}

// MemAvailable of the kernel's account, or 0 where there is none.
std::size_t available_bytes() {
  std::ifstream account("/proc/meminfo");
  for (std::string key; account >> key;) {
    std::size_t kib = 0;
    if (key == "MemAvailable:" && account >> kib) return kib * 1024;
    account.ignore(256, '\n');
  }
  return 0;
}

// Better one sentence now than a process that the kernel kills later.
Outcome check_memory(const Options& options, int nranks) {
  const std::size_t each = footprint(options.sizes.most);
  std::size_t need = 0;
  const bool overflow =
      __builtin_mul_overflow(each, std::size_t{2} * static_cast<std::size_t>(nranks), &need);
  const std::size_t available = available_bytes();
  if (!overflow && (available == 0 || need <= available)) return {};
  return Error{"2 buffers of " + in_words(options.sizes.most) + " (-e) for each of " +
               std::to_string(nranks) + " ranks are more than the " + in_words(available) +
               " of memory available here"};
}

// A name for processes that only this one starts.
std::string private_job() {
  std::random_device random;
  return "alone " + std::to_string(getpid()) + " " + std::to_string(random()) + std::to_string(random());
}

int fail(const std::string& text, int exit_code) {
  std::fprintf(stderr, "pkcomm-perf: %s\n", text.c_str());
  return exit_code;
}

int run(const Options& options) {
  if (options.platform != "auto") setenv("PKCOMM_PLATFORM", options.platform.c_str(), 1);
  // NCCL's own multicast is switched off unless somebody has decided otherwise.
  if (options.with_nccl) setenv("NCCL_NVLS_ENABLE", "0", 0);
  // Ranks that share a GPU must not share its queues either: there one would wait behind another's kernel.
  if (options.threads > 1) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  if (!options.algorithm.empty() && options.algorithm != "each") {
    setenv("PKCOMM_ALGORITHM", options.algorithm.c_str(), 1);
  }
  const Result<Launch> launch = find_launch(from_environment, options.launcher, static_cast<int>(getppid()));
  if (!launch.ok()) return fail(launch.error().text, kExitUsage);
  const Launch& place = launch.value();
  const int own_ranks = options.processes * options.threads;
  const int nranks = place.processes * own_ranks;
  if (place.process == 0) {
    for (const std::string& note : options.notes) std::fprintf(stderr, "pkcomm-perf: %s\n", note.c_str());
  }
  if (!place.warning.empty()) std::fprintf(stderr, "pkcomm-perf: warning: %s\n", place.warning.c_str());
  if (options.explain) return place.process == 0 ? explain(options, nranks) : 0;
  if (options.root >= nranks) {
    return fail("-r " + std::to_string(options.root) + ": there are " + std::to_string(nranks) + " ranks",
                kExitUsage);
  }
  const bool on_gpus = options.platform == "cuda" || (options.platform == "auto" && gpus_in_sight());
  if (const Outcome memory = check_memory(options, nranks); !on_gpus && !memory.ok())
    return fail(memory.error().text, kExitFailed);

  MeetingPoint where =
      meeting_point_of(place.processes > 1 ? place.launcher + " " + place.job : private_job());
  if (place.processes > 1 && !options.rendezvous.empty()) {
    where = parse_meeting_point(options.rendezvous).value();  // was checked with the command line
  }
  const Crew crew{place.process * own_ranks, options.processes, options.threads, options.timeout_s};
  return supervise(
      crew, [&](int rank, RankStatus& status) { return run_rank(options, where, rank, nranks, status); });
}

}  // namespace

}  // namespace pkcomm::perf

int main(int argc, char** argv) {
  using namespace pkcomm::perf;
  int exit_code = 0;
  const std::optional<Options> options = parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  if (options->list) {
    print_list();
    return 0;
  }
  return run(*options);
}
