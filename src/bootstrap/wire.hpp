// What travels between the ranks at start-up, as plain data and pure functions: the hello of a rank, the outcome of
// a rendezvous, and the table of who is where. Ranks share one machine, so fields are in the host's byte order; a
// reader still trusts no length and no number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "bootstrap/nonce.hpp"

namespace pkcomm::bootstrap {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr int kMaxRanks = 1024;
inline constexpr std::size_t kMaxAgreementBytes = 256;

/// Where a Unix socket listens: an abstract name, or a file of PKCOMM_RUNTIME_DIR (each process sees that directory
/// under its own path).
struct UnixName {
  bool is_file = false;
  std::string name;
  bool operator==(const UnixName&) const = default;
};
inline constexpr std::size_t kMaxNameBytes = 32;

/// What a rank says first. The prefix up to `bytes` is the same in all versions, so that versions can tell each
/// other.
struct Hello {
  std::uint64_t magic;
  Nonce nonce;  ///< of the id: proves that this is a rank and no stray
  std::uint32_t version;
  std::uint32_t bytes;  ///< of this version's hello
  Nonce process;
  std::int32_t rank;
  std::int32_t nranks;
  std::int64_t pid;
  std::uint64_t place;
  std::int64_t limit_ms;  ///< 0: the rank waits for ever
  std::int64_t remaining_ms;
  std::uint16_t name_is_file;
  std::uint16_t name_bytes;
  std::uint16_t agreement_bytes;
  std::uint16_t zero;
  char name[kMaxNameBytes];  ///< where its process awaits the other processes' connections
  std::byte agreement[kMaxAgreementBytes];
  std::uint64_t checksum;  ///< of everything before it

  std::span<const std::byte> agreement_span() const { return {agreement, agreement_bytes}; }
  UnixName unix_name() const { return {name_is_file != 0, std::string(name, name_bytes)}; }
};

/// Fills in what makes a hello complete; the arguments are within their limits.
Hello make_hello(const Nonce& nonce, const Nonce& process, int nranks, int rank, const UnixName& name,
                 std::span<const std::byte> agreement);
/// Sets the time that is left and the checksum: to be called when it is sent.
void seal(Hello& hello, std::int64_t limit_ms, std::int64_t remaining_ms);

enum class HelloState {
  kIncomplete,    ///< a beginning of a good hello: read on
  kForeign,       ///< not from a rank of this communicator: close, whatever follows
  kOtherVersion,  ///< a rank, but of another version of pkcomm
  kGood,
};
/// Judges the first bytes of a connection. Reads nothing beyond `bytes` and accepts no field out of range. Pure.
HelloState parse_hello(std::span<const std::byte> bytes, const Nonce& nonce, Hello& hello);

/// Who is where. Processes are numbered by their lowest rank.
struct Table {
  struct Process {
    std::int64_t pid = 0;
    std::uint64_t place = 0;
    UnixName name;
    std::vector<int> ranks;
  };
  std::vector<Process> processes;
  std::vector<int> process_of_rank;

  /// "rank 2 (pid 4711)" or "ranks 2-5 (pid 4711)".
  std::string name_of(int process) const;
  /// Whether the processes can reach each other by Unix sockets, as far as the table tells: all by files of
  /// PKCOMM_RUNTIME_DIR or all by abstract names within one network namespace. The same on all ranks.
  Status check_reachable() const;
};

/// How a rendezvous ended; every rank is told the same.
struct Outcome {
  struct Failure {
    pkcommResult_t code;
    std::string text;
  };
  /// Agreements that differ. The ranks put them into words: the process that listens need not be one of them.
  struct Disagreement {
    int ranks[2];
    std::vector<std::byte> agreements[2];
  };
  std::optional<Table> table;
  std::optional<Failure> failure;
  std::optional<Disagreement> disagreement;
};

std::vector<std::byte> encode(const Outcome& outcome);
/// Nothing where `bytes` are not an outcome, whole and in range.
std::optional<Outcome> decode_outcome(std::span<const std::byte> bytes);

/// Precedes what the listener sends to a rank.
struct ReplyHeader {
  enum Kind : std::uint32_t { kAccepted = 1, kOutcome = 2 };
  std::uint64_t magic;
  std::uint32_t kind;
  std::uint32_t bytes;  ///< that follow; at most kMaxReplyBytes
};
inline constexpr std::uint64_t kReplyMagic = 0x31796c7065726b70;  // "pkreply1"
inline constexpr std::uint32_t kMaxReplyBytes = 1 << 20;

/// Said of an id that is not open any more.
inline constexpr const char* kServed =
    "start-up: this id has already served, or was left unused for too long; an id is for one communicator, "
    "once";

/// "rank 3" or "ranks 0, 2-5"; at most a dozen parts, then "and 40 more".
std::string rank_list(std::span<const int> ranks);

}  // namespace pkcomm::bootstrap
