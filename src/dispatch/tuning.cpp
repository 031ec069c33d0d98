// Tables from JSON to curves. A table is read whole before the first curve is replaced, so a wrong one changes nothing.
#include "dispatch/tuning.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/hash.hpp"
#include "base/json.hpp"
#include "collectives/descriptors.hpp"
#include "dispatch/tables/tables.hpp"

namespace pkcomm::dispatch {
namespace {

// Bounds that keep every sum of the pricing far from overflow; no machine comes near them.
constexpr std::int64_t kMostNs = std::int64_t{1} << 40;  // 18 minutes
constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;
constexpr std::int64_t kMostRate = 1'000'000'000;  // a petabyte per second
constexpr std::int64_t kMostCtas = 64;
constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostRanks = 1024;
constexpr std::int64_t kMostPricePpm = 1'000'000;

/// One curve of a table and all it stands for.
struct Entry {
  std::vector<Collective> collectives;
  std::vector<Algorithm> algorithms;
  std::vector<Path> paths;
  Curve curve;
};

struct Table {
  std::string name;
  std::optional<Q32> cta_price;
  std::vector<Entry> entries;
};

Result<std::uint64_t> number(const json::Value& object, std::string_view key, std::int64_t fallback,
                             std::int64_t least, std::int64_t most) {
  PK_ASSIGN(const std::int64_t value, object.integer_or(key, fallback, least, most));
  return static_cast<std::uint64_t>(value);
}

// A required list of names, each found by `find`.
template <class Enum, class Find>
Result<std::vector<Enum>> names(const json::Value& object, std::string_view key, Find find,
                                std::string_view allowed) {
  PK_ASSIGN(const json::Value* list, object.member(key));
  PK_ASSIGN(const auto items, list->items());
  std::vector<Enum> values;
  for (const json::Value& item : items) {
    PK_ASSIGN(const std::string word, item.text());
    const std::optional<Enum> value = find(word);
    if (!value) return item.refuse("allowed " + std::string(allowed));
    values.push_back(*value);
  }
  if (values.empty()) return list->refuse("needs at least one of " + std::string(allowed));
  return values;
}

template <class Enum>
std::string all_names(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text.append(i == 0 ? "" : ", ").append(name(static_cast<Enum>(i)));
  return text;
}

std::optional<Path> find_path(std::string_view word) {
  for (const Path path : {Path::kStaged, Path::kZeroCopy}) {
    if (word == name(path)) return path;
  }
  return std::nullopt;
}

bool has_path(const Descriptor& d, Path path) {
  if (d.route == Route::kEither) return true;
  return (d.route == Route::kWindows) == (path == Path::kZeroCopy);
}

Result<Line> parse_line(const json::Value& value) {
  PK_TRY(value.only({"from_bytes", "ctas", "alpha_ns", "bytes_per_us"}));
  for (const std::string_view key : {"ctas", "alpha_ns", "bytes_per_us"}) PK_TRY(value.member(key).status());
  Line line;
  PK_ASSIGN(line.from_bytes, number(value, "from_bytes", 0, 0, kMostBytes));
  PK_ASSIGN(const std::uint64_t ctas, number(value, "ctas", 0, 0, kMostCtas));
  PK_ASSIGN(line.alpha_ns, number(value, "alpha_ns", 0, 0, kMostNs));
  PK_ASSIGN(const std::uint64_t rate, number(value, "bytes_per_us", 1, 1, kMostRate));
  line.ctas = static_cast<int>(ctas);
  line.ns_per_byte = ((std::uint64_t{1000} << 32) + rate / 2) / rate;
  return line;
}

Result<std::vector<Line>> parse_lines(const json::Value& curve) {
  PK_ASSIGN(const json::Value* list, curve.member("lines"));
  PK_ASSIGN(const auto items, list->items());
  std::vector<Line> lines;
  for (const json::Value& item : items) {
    PK_ASSIGN(const Line line, parse_line(item));
    lines.push_back(line);
  }
  const auto key = [](const Line& line) { return std::pair(line.ctas, line.from_bytes); };
  std::sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) { return key(a) < key(b); });
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (key(lines[i - 1]) == key(lines[i])) {
      return list->refuse("two lines have " + std::to_string(lines[i].ctas) + " CTAs from byte " +
                          std::to_string(lines[i].from_bytes));
    }
  }
  const auto from_start = [](const Line& line) { return line.from_bytes == 0; };
  if (std::none_of(lines.begin(), lines.end(), from_start)) return list->refuse("no line starts from byte 0");
  return lines;
}

Result<Entry> parse_entry(const json::Value& value) {
  PK_TRY(value.only({"collectives", "algorithms", "paths", "nranks", "per_peer_ns", "round_ns", "threads",
                     "chunk_bytes", "provisional", "source", "lines"}));
  Entry entry;
  PK_ASSIGN(entry.collectives,
            names<Collective>(value, "collectives", find_collective, all_names<Collective>(kCollectives)));
  PK_ASSIGN(entry.algorithms,
            names<Algorithm>(value, "algorithms", find_algorithm, all_names<Algorithm>(kAlgorithms)));
  PK_ASSIGN(entry.paths, names<Path>(value, "paths", find_path, all_names<Path>(kPaths)));
  for (const Algorithm algorithm : entry.algorithms) {
    const Descriptor& d = descriptor(algorithm);
    for (const Collective collective : entry.collectives) {
      if ((d.collectives & bit(collective)) != 0) continue;
      return value.refuse(std::string(d.name) + " does not do " + std::string(name(collective)));
    }
    for (const Path path : entry.paths) {
      if (!has_path(d, path))
        return value.refuse(std::string(d.name) + " is never " + std::string(name(path)));
    }
  }
  Curve& curve = entry.curve;
  PK_ASSIGN(const std::uint64_t nranks, number(value, "nranks", 2, 1, kMostRanks));
  PK_ASSIGN(curve.per_peer_ns, number(value, "per_peer_ns", 0, 0, kMostNs));
  PK_ASSIGN(curve.round_ns, number(value, "round_ns", 0, 0, kMostNs));
  PK_ASSIGN(const std::uint64_t threads, number(value, "threads", 1, 1, kMostThreads));
  PK_ASSIGN(curve.chunk_bytes, number(value, "chunk_bytes", 0, 0, kMostBytes));
  PK_ASSIGN(curve.provisional, value.boolean_or("provisional", false));
  PK_ASSIGN(curve.source, value.text_or("source", ""));
  PK_ASSIGN(curve.lines, parse_lines(value));
  curve.nranks = static_cast<int>(nranks);
  curve.threads = static_cast<int>(threads);
  return entry;
}

// Fails where the table was made for another machine. An empty name fits all.
Status check_machine(const json::Value& machine, const Topology& topology) {
  PK_TRY(machine.only({"platform", "gpu", "cpu"}));
  PK_ASSIGN(const std::string platform, machine.text_or("platform", ""));
  PK_ASSIGN(const std::string gpu, machine.text_or("gpu", ""));
  PK_ASSIGN(const std::string cpu, machine.text_or("cpu", ""));
  const std::string here_gpu = topology.gpus.empty() ? "none" : topology.gpus.front().name;
  const auto compare = [&](std::string_view what, const std::string& wanted,
                           std::string_view here) -> Status {
    if (wanted.empty() || wanted == here) return {};
    return {pkcommInvalidArgument, machine.where() + ": the table is for " + std::string(what) + " \"" +
                                       wanted + "\", this machine has \"" + std::string(here) + "\""};
  };
  PK_TRY(compare("platform", platform, name(topology.platform)));
  PK_TRY(compare("GPU", gpu, here_gpu));
  return compare("CPU", cpu, topology.cpu);
}

Result<Table> parse_table(std::string_view text, std::string_view source, const Topology& topology) {
  PK_ASSIGN(const json::Value root, json::parse(text, source));
  PK_TRY(root.only({"schema", "name", "machine", "cta_price_ppm", "curves"}));
  PK_ASSIGN(const json::Value* schema, root.member("schema"));
  PK_TRY(schema->integer(kTuningSchema, kTuningSchema).status());
  PK_ASSIGN(const json::Value* machine, root.member("machine"));
  PK_TRY(check_machine(*machine, topology));
  Table table;
  PK_ASSIGN(table.name, root.text_or("name", source));
  if (root.find("cta_price_ppm") != nullptr) {
    PK_ASSIGN(const std::uint64_t ppm, number(root, "cta_price_ppm", 0, 0, kMostPricePpm));
    table.cta_price = (ppm << 32) / 1'000'000;
  }
  PK_ASSIGN(const json::Value* curves, root.member("curves"));
  PK_ASSIGN(const auto items, curves->items());
  for (const json::Value& item : items) {
    PK_ASSIGN(Entry entry, parse_entry(item));
    table.entries.push_back(std::move(entry));
  }
  return table;
}

void replace(std::vector<Curve>& curves, const Curve& curve) {
  const auto at = std::lower_bound(curves.begin(), curves.end(), curve.nranks,
                                   [](const Curve& have, int nranks) { return have.nranks < nranks; });
  if (at != curves.end() && at->nranks == curve.nranks) {
    *at = curve;
  } else {
    curves.insert(at, curve);
  }
}

}  // namespace

std::string_view name(Path path) noexcept { return path == Path::kZeroCopy ? "zero_copy" : "staged"; }

Status Tuning::overlay(std::string_view text, std::string_view source, const Topology& topology) {
  PK_ASSIGN(Table table, parse_table(text, source, topology));
  for (const Entry& entry : table.entries) {
    for (const Collective collective : entry.collectives) {
      for (const Algorithm algorithm : entry.algorithms) {
        for (const Path path : entry.paths) replace(curves_[slot(collective, algorithm, path)], entry.curve);
      }
    }
  }
  if (table.cta_price) cta_price_ = *table.cta_price;
  name_ += (name_.empty() ? "" : " + ") + table.name;
  return {};
}

Result<Tuning> Tuning::builtin(const Topology& topology) {
  // The tables are checked against the machine they were made for; without one for this machine the first of its
  // platform stand in.
  Topology like = topology;
  const auto fits = [&](const BuiltinTable& table) {
    return table.platform == like.platform && (like.gpus.empty() || table.gpu == like.gpus.front().name);
  };
  const auto tables = builtin_tables();
  const bool own = std::any_of(tables.begin(), tables.end(), fits);
  if (!own && !like.gpus.empty()) {
    const auto same_platform = [&](const BuiltinTable& table) { return table.platform == like.platform; };
    const auto stand_in = std::find_if(tables.begin(), tables.end(), same_platform);
    if (stand_in != tables.end()) like.gpus.front().name = std::string(stand_in->gpu);
  }
  Tuning tuning;
  for (const BuiltinTable& table : tables) {
    if (fits(table)) PK_TRY(tuning.overlay(table.json, table.name, like));
  }
  if (!own && !topology.gpus.empty()) {
    tuning.note_ = "there is no table for " + topology.gpus.front().name + ": that for " +
                   like.gpus.front().name + " stands in";
  }
  return tuning;
}

std::uint64_t Tuning::hash() const noexcept {
  Hash hash;
  hash.add(kTuningSchema);
  hash.add(cta_price_);
  for (const std::vector<Curve>& curves : curves_) {
    hash.add(curves.size());
    for (const Curve& curve : curves) {
      hash.add(curve.nranks);
      hash.add(curve.per_peer_ns);
      hash.add(curve.round_ns);
      hash.add(curve.threads);
      hash.add(curve.chunk_bytes);
      hash.add(curve.lines.size());
      for (const Line& line : curve.lines) {
        hash.add(line.from_bytes);
        hash.add(line.ctas);
        hash.add(line.alpha_ns);
        hash.add(line.ns_per_byte);
      }
    }
  }
  return hash.value();
}

}  // namespace pkcomm::dispatch
