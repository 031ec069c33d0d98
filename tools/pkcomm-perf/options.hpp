// What the command line asks for, after all checks. Flags that nccl-tests has keep their letters, names and
// defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collective_id.hpp"
#include "sizes.hpp"
#include "types.hpp"

namespace pkcomm::perf {

enum class Memory { kMalloc, kHeap };
/// How the ranks' mean times become one (-a).
enum class Across { kRank0, kMean, kMin, kMax };
/// When a rank waits (-z).
enum class Blocking { kNone, kWaitAndBarrier, kWait, kOutsideTime };

/// A fault put into the results on purpose, to see that the check finds it.
struct Injection {
  int rank = 0;
  std::optional<std::size_t> element;  // none: the last one
  bool out_of_place = true;
  bool in_place = true;
  std::optional<std::size_t> bytes;  // none: at every size
};

struct Options {
  std::vector<CollectiveId> collectives;
  SizeSweep sizes{32u << 20, 32u << 20, 1u << 20, 1};
  std::vector<pkcommDataType_t> types{pkcommFloat32};
  std::vector<Op> ops{Op::kSum};
  int root = 0;
  bool all_roots = false;

  int threads = 1;    // ranks of one process
  int processes = 1;  // started by each process that the user or a launcher starts

  int iterations = 20;
  int aggregate = 1;
  int warmup = 1;
  int cycles = 1;  // 0: until interrupted
  int checks = 1;
  int timeout_s = 0;  // 0: the library's
  int unalign = 0;    // elements
  int skip_samples = 0;
  std::optional<Across> across;  // none: the mean on the host, the greatest on a GPU
  int repeats = 0;               // 0: 1 on the host, 5 on a GPU
  Blocking blocking = Blocking::kNone;
  Memory memory = Memory::kMalloc;
  bool null_stream = false;
  bool host_time = false;
  bool timestamps = false;
  bool memory_report = false;
  bool per_iteration = false;
  bool percentiles = false;
  bool skew = false;

  bool with_pkcomm = true;  // --backend
  bool with_nccl = false;
  std::string nccl_library;  // a file; empty: search for it
  std::string graph_flag;    // as the user wrote it; empty: no graphs
  bool eager = false;        // with graphs: calls enqueued one by one as well
  int graph_calls = 100;
  int graph_replays = 1;
  bool cold = false;

  std::string platform = "auto";
  std::string algorithm;  // rules of PKCOMM_ALGORITHM, "each", or empty
  std::string launcher = "auto";
  std::string rendezvous;  // host:port; empty: by the job's name
  int join_timeout_s = 60;

  std::string csv;   // "-": standard output
  std::string json;  // "-": standard output
  std::string plot;
  bool explain = false;
  std::string topology;
  bool list = false;

  std::optional<Injection> injection;
  std::vector<std::string> notes;      // flags that mean nothing here, a sentence each
  std::vector<std::string> arguments;  // as given

  /// Whether single iterations are timed, in a run of their own.
  bool wants_samples() const {
    return per_iteration || percentiles || skew || ((!csv.empty() || !json.empty()) && !null_stream);
  }
};

/// Reads the command line. Where it returns no options, `exit_code` says how to end; what had to be said was
/// printed.
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace pkcomm::perf
