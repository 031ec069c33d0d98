// The one table of the environment variables that pkcomm knows: kind, default, limits, meaning. Readers, messages, the
// help text and the search for misspelt names derive from it, so a new variable is one row here and one name in Var.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pkcomm::environment {

/// In the order of kTable.
enum class Var {
  kPlatform,
  kLog,
  kLogFile,
  kStaging,
  kHeapSize,
  kChunk,
  kMinCtas,
  kMaxCtas,
  kAlgorithm,
  kMechanism,
  kTuning,
  kMulticast,
  kTimeout,
  kInitTimeout,
  kSocketIfname,
  kRuntimeDir,
  kSpinUs,
  kHostSeed,
  kCuda,
};

enum class Kind {
  kChoice,   // one of `choices`, in any case
  kText,     // taken as it is; empty counts as unset
  kBytes,    // parse_bytes(), least..most bytes
  kInteger,  // parse_integer(), least..most
  kSeconds,  // parse_seconds(), least..most milliseconds
  kRules,    // parse_rules() of base/environment.hpp; empty counts as unset
  kBuild,    // read by the scripts that build pkcomm, never by the library
};

struct Description {
  Var var;
  std::string_view name;
  Kind kind;
  std::string_view
      fallback;  // the default as one would write it; empty: none, the meaning says what happens then
  std::int64_t least;
  std::int64_t most;
  std::string_view choices;  // separated by |, in the order of the enum that get() returns
  std::string_view meaning;
  std::string_view habits;  // what users of similar libraries would call it (without prefix), separated by |
};

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGiB = 1024 * kMiB;
inline constexpr std::int64_t kYearMs = std::int64_t{365} * 24 * 3600 * 1000;

inline constexpr std::array kTable = {
    Description{Var::kPlatform, "PKCOMM_PLATFORM", Kind::kChoice, "auto", 0, 0, "auto|cuda|host",
                "platform to run on; auto: cuda where there is a GPU, else host", "BACKEND|DEVICE"},
    Description{Var::kLog, "PKCOMM_LOG", Kind::kChoice, "warn", 0, 0, "error|warn|info|debug",
                "least serious lines that are logged", "DEBUG|LOG_LEVEL|VERBOSE"},
    Description{Var::kLogFile, "PKCOMM_LOG_FILE", Kind::kText, "", 0, 0, "",
                "file for the log instead of stderr, appended to; %h is the host, %p the process",
                "DEBUG_FILE"},
    Description{Var::kStaging, "PKCOMM_STAGING", Kind::kBytes, "64M", kMiB, 64 * kGiB, "",
                "staging memory of a communicator, bytes a rank; equal on all ranks", "BUFFSIZE|BUFFER_SIZE"},
    Description{Var::kHeapSize, "PKCOMM_HEAP_SIZE", Kind::kBytes, "16G", 64 * kKiB, 4096 * kGiB, "",
                "most bytes of symmetric heap a rank; equal on all ranks", "SYMMETRIC_SIZE"},
    Description{Var::kChunk, "PKCOMM_CHUNK", Kind::kBytes, "", 4 * kKiB, 16 * kMiB, "",
                "bytes of one round through staging; unset: chosen by the message", "CHUNKSIZE|CHUNK_SIZE"},
    Description{Var::kMinCtas, "PKCOMM_MIN_CTAS", Kind::kInteger, "", 1, 64, "",
                "fewest CTAs of a launch; unset: as the communicator's configuration says", "MIN_NCHANNELS"},
    Description{Var::kMaxCtas, "PKCOMM_MAX_CTAS", Kind::kInteger, "", 1, 64, "",
                "most CTAs of a launch; unset: as the communicator's configuration says", "MAX_NCHANNELS"},
    Description{Var::kAlgorithm, "PKCOMM_ALGORITHM", Kind::kRules, "", 0, 0, "",
                "algorithms allowed, or with ^ denied: [collective:][^]name,...;...", "ALGO"},
    Description{Var::kMechanism, "PKCOMM_MECHANISM", Kind::kRules, "", 0, 0, "",
                "mechanisms allowed, or with ^ denied: [collective:][^]name,...;...", "PROTO|PROTOCOL"},
    Description{Var::kTuning, "PKCOMM_TUNING", Kind::kText, "", 0, 0, "",
                "tuning table (JSON) to use instead of the built-in one; equal on all ranks", "TUNER_CONFIG"},
    Description{Var::kMulticast, "PKCOMM_MULTICAST", Kind::kChoice, "auto", 0, 0, "auto|off|require",
                "multicast objects: off never calls them, require makes their absence an error",
                "NVLS_ENABLE|NVLS"},
    Description{Var::kTimeout, "PKCOMM_TIMEOUT", Kind::kSeconds, "1800", 0, kYearMs, "",
                "seconds that enqueued work may wait for a peer; 0: no limit", "WATCHDOG_TIMEOUT"},
    Description{Var::kInitTimeout, "PKCOMM_INIT_TIMEOUT", Kind::kSeconds, "60", 1, kYearMs, "",
                "seconds that start-up may wait for all ranks", "CONNECT_TIMEOUT"},
    Description{Var::kSocketIfname, "PKCOMM_SOCKET_IFNAME", Kind::kText, "", 0, 0, "",
                "network interfaces for start-up: prefixes, =exact names, ^ denies; unset: first usable",
                "IFNAME"},
    Description{Var::kRuntimeDir, "PKCOMM_RUNTIME_DIR", Kind::kText, "", 0, 0, "",
                "directory for socket files where ranks live in different network namespaces", "TMPDIR"},
    Description{Var::kSpinUs, "PKCOMM_SPIN_US", Kind::kInteger, "", 0, 1000000, "",
                "microseconds that a host wait spins before it sleeps; unset: by cores and ranks", "SPIN"},
    Description{Var::kHostSeed, "PKCOMM_HOST_SEED", Kind::kInteger, "", 0, INT64_MAX, "",
                "testing: seed for the order of late copies on the host platform", "SEED"},
    Description{Var::kCuda, "PKCOMM_CUDA", Kind::kBuild, "AUTO", 0, 0, "AUTO|ON|OFF",
                "for scripts/quickstart and scripts/test: build the CUDA parts; not read by the library", ""},
};

constexpr const Description& describe(Var var) { return kTable[static_cast<std::size_t>(var)]; }

static_assert(
    [] {
      for (std::size_t i = 0; i < kTable.size(); ++i) {
        if (kTable[i].var != static_cast<Var>(i)) return false;
      }
      return kTable.back().var == Var::kCuda;
    }(),
    "kTable has the order of Var");

}  // namespace pkcomm::environment
