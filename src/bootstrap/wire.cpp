// Reading here is defensive throughout: a hello may come from anybody, and an answer from whoever took over the
// listener's address.
#include "bootstrap/wire.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "bootstrap/process.hpp"

namespace pkcomm::bootstrap {
namespace {

constexpr std::uint64_t kHelloMagic = 0x316f6c6c65686b70;  // "pkhello1"
static_assert(std::is_trivially_copyable_v<Hello> && sizeof(Hello) == 392 && offsetof(Hello, version) == 24,
              "a hello has no padding, and its prefix is pinned");
constexpr std::size_t kPrefixBytes = offsetof(Hello, process);

/// Whether the first bytes of a field, as many as there are, are those of `expected`.
template <typename T>
bool begins_like(std::span<const std::byte> bytes, std::size_t offset, const T& expected) {
  if (bytes.size() <= offset) return true;
  return std::memcmp(bytes.data() + offset, &expected, std::min(sizeof(T), bytes.size() - offset)) == 0;
}

bool in_range(const Hello& hello) {
  return hello.bytes == sizeof(Hello) && hello.nranks >= 1 && hello.nranks <= kMaxRanks && hello.rank >= 0 &&
         hello.rank < hello.nranks && hello.name_is_file <= 1 && hello.name_bytes >= 1 &&
         hello.name_bytes <= kMaxNameBytes && hello.agreement_bytes <= kMaxAgreementBytes &&
         hello.zero == 0 && hello.limit_ms >= 0 && hello.remaining_ms >= 0 &&
         hello.remaining_ms <= hello.limit_ms;
}

class Writer {
 public:
  template <typename T>
  void number(T value) {
    raw(&value, sizeof(value));
  }
  void raw(const void* data, std::size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + bytes);
  }
  template <typename Container>
  void sized(const Container& data) {
    number(static_cast<std::uint32_t>(data.size()));
    raw(data.data(), data.size());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a Writer wrote. After a fault every further read gives zeros and `good` stays false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T number() {
    T value{};
    if (take(sizeof(T)).size() == sizeof(T)) std::memcpy(&value, taken_.data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> sized(std::size_t most) {
    const auto bytes = number<std::uint32_t>();
    if (bytes > most) good_ = false;
    return take(good_ ? bytes : 0);
  }
  void require(bool condition) { good_ = good_ && condition; }
  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t bytes) {
    good_ = good_ && bytes <= bytes_.size();
    taken_ = good_ ? bytes_.first(bytes) : std::span<const std::byte>{};
    if (good_) bytes_ = bytes_.subspan(bytes);
    return taken_;
  }
  std::span<const std::byte> bytes_;
  std::span<const std::byte> taken_;
  bool good_ = true;
};

enum OutcomeKind : std::uint32_t { kTable = 1, kFailure = 2, kDisagreement = 3 };

void write(Writer& out, const Table& table) {
  out.number(static_cast<std::uint32_t>(table.processes.size()));
  for (const Table::Process& process : table.processes) {
    out.number(process.pid);
    out.number(process.place);
    out.number(static_cast<std::uint32_t>(process.name.is_file));
    out.sized(process.name.name);
  }
  out.number(static_cast<std::uint32_t>(table.process_of_rank.size()));
  for (const int process : table.process_of_rank) out.number(static_cast<std::uint32_t>(process));
}

Table read_table(Reader& in) {
  Table table;
  const auto processes = in.number<std::uint32_t>();
  in.require(processes >= 1 && processes <= kMaxRanks);
  for (std::uint32_t p = 0; in.good() && p < processes; ++p) {
    Table::Process process;
    process.pid = in.number<std::int64_t>();
    process.place = in.number<std::uint64_t>();
    process.name.is_file = in.number<std::uint32_t>() != 0;
    const auto name = in.sized(kMaxNameBytes);
    process.name.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    table.processes.push_back(std::move(process));
  }
  const auto ranks = in.number<std::uint32_t>();
  in.require(ranks >= processes && ranks <= kMaxRanks);
  std::uint32_t seen = 0;  // processes are numbered by their lowest rank, so a new one is the next
  for (std::uint32_t rank = 0; in.good() && rank < ranks; ++rank) {
    const auto process = in.number<std::uint32_t>();
    in.require(process <= seen && process < processes);
    if (!in.good()) break;
    if (process == seen) ++seen;
    table.process_of_rank.push_back(static_cast<int>(process));
    table.processes[process].ranks.push_back(static_cast<int>(rank));
  }
  in.require(seen == processes);
  return table;
}

}  // namespace

Hello make_hello(const Nonce& nonce, const Nonce& process, int nranks, int rank, const UnixName& name,
                 std::span<const std::byte> agreement) {
  Hello hello = {};
  hello.magic = kHelloMagic;
  hello.nonce = nonce;
  hello.version = kProtocolVersion;
  hello.bytes = sizeof(Hello);
  hello.process = process;
  hello.rank = rank;
  hello.nranks = nranks;
  hello.pid = ::getpid();
  hello.place = place_of_process();
  hello.name_is_file = name.is_file ? 1 : 0;
  hello.name_bytes = static_cast<std::uint16_t>(name.name.size());
  std::memcpy(hello.name, name.name.data(), name.name.size());
  hello.agreement_bytes = static_cast<std::uint16_t>(agreement.size());
  if (!agreement.empty()) std::memcpy(hello.agreement, agreement.data(), agreement.size());
  return hello;
}

void seal(Hello& hello, std::int64_t limit_ms, std::int64_t remaining_ms) {
  hello.limit_ms = limit_ms;
  hello.remaining_ms = limit_ms == 0 ? 0 : std::min(remaining_ms, limit_ms);
  hello.checksum = checksum(&hello, offsetof(Hello, checksum));
}

HelloState parse_hello(std::span<const std::byte> bytes, const Nonce& nonce, Hello& hello) {
  if (!begins_like(bytes, 0, kHelloMagic) || !begins_like(bytes, offsetof(Hello, nonce), nonce)) {
    return HelloState::kForeign;
  }
  if (bytes.size() < kPrefixBytes) return HelloState::kIncomplete;
  std::memcpy(&hello, bytes.data(), std::min(bytes.size(), sizeof(Hello)));
  if (hello.version != kProtocolVersion) return HelloState::kOtherVersion;
  if (bytes.size() < sizeof(Hello)) return HelloState::kIncomplete;
  const bool whole = bytes.size() == sizeof(Hello) && in_range(hello) &&
                     hello.checksum == checksum(&hello, offsetof(Hello, checksum));
  return whole ? HelloState::kGood : HelloState::kForeign;
}

std::string Table::name_of(int process) const {
  const Process& p = processes[static_cast<std::size_t>(process)];
  return rank_list(p.ranks) + " (pid " + std::to_string(p.pid) + ")";
}

Status Table::check_reachable() const {
  for (int p = 1; p < static_cast<int>(processes.size()); ++p) {
    const Process& first = processes[0];
    const Process& other = processes[static_cast<std::size_t>(p)];
    if (first.name.is_file != other.name.is_file) {
      return {pkcommInvalidUsage, "PKCOMM_RUNTIME_DIR is set for " + name_of(first.name.is_file ? 0 : p) +
                                      " and not for " + name_of(first.name.is_file ? p : 0) +
                                      "; set it for all ranks or for none"};
    }
    if (!first.name.is_file && first.place != 0 && other.place != 0 && first.place != other.place) {
      return {pkcommUnsupported, name_of(0) + " and " + name_of(p) +
                                     " live in different network namespaces or on different machines; in the "
                                     "first case set PKCOMM_RUNTIME_DIR to a directory that all ranks see"};
    }
  }
  return {};
}

std::vector<std::byte> encode(const Outcome& outcome) {
  Writer out;
  if (outcome.table) {
    out.number<std::uint32_t>(kTable);
    write(out, *outcome.table);
  } else if (outcome.disagreement) {
    out.number<std::uint32_t>(kDisagreement);
    for (int i = 0; i < 2; ++i) {
      out.number<std::int32_t>(outcome.disagreement->ranks[i]);
      out.sized(outcome.disagreement->agreements[i]);
    }
  } else {
    out.number<std::uint32_t>(kFailure);
    out.number(static_cast<std::int32_t>(outcome.failure->code));
    out.sized(outcome.failure->text);
  }
  return out.take();
}

std::optional<Outcome> decode_outcome(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Outcome outcome;
  switch (in.number<std::uint32_t>()) {
    case kTable:
      outcome.table = read_table(in);
      break;
    case kDisagreement: {
      Outcome::Disagreement& difference = outcome.disagreement.emplace();
      for (int i = 0; i < 2; ++i) {
        difference.ranks[i] = in.number<std::int32_t>();
        const auto agreement = in.sized(kMaxAgreementBytes);
        difference.agreements[i].assign(agreement.begin(), agreement.end());
      }
      break;
    }
    case kFailure: {
      const auto code = in.number<std::int32_t>();
      in.require(code > pkcommSuccess && code <= pkcommMismatch);
      const auto text = in.sized(kMaxReplyBytes);
      if (!in.good()) return std::nullopt;
      outcome.failure = {static_cast<pkcommResult_t>(code),
                         std::string(reinterpret_cast<const char*>(text.data()), text.size())};
      break;
    }
    default:
      return std::nullopt;
  }
  if (!in.good() || !in.at_end()) return std::nullopt;
  return outcome;
}

std::string rank_list(std::span<const int> ranks) {
  constexpr int kMostParts = 12;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int parts = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    if (parts++ == kMostParts) return text + " and " + std::to_string(ranks.size() - i) + " more";
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    // "4, 5" is plainer than "4-5".
    if (last == i + 1) text += ", " + std::to_string(ranks[last]);
    if (last > i + 1) text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace pkcomm::bootstrap
