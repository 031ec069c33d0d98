// What a row is about, and what a rank needs at hand for measuring it.
#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include "collectives.hpp"
#include "device.hpp"
#include "options.hpp"
#include "pattern.hpp"
#include "rank_status.hpp"
#include "team.hpp"

namespace pkcomm::perf {

struct Subject {
  const Collective* collective = nullptr;
  pkcommDataType_t type = pkcommFloat32;
  Op op = Op::kSum;
  int root = 0;
  Shape shape;
  std::string forced;  // algorithm under --algorithm each, or empty

  std::size_t bytes() const { return shape.sized * describe(type).bytes; }
  PatternSpec pattern(int nranks, std::uint64_t seed) const {
    return {type, collective->reduces, op, nranks, seed};
  }
};

/// Of one rank; everything outlives the measurements.
struct Context {
  const Options& options;
  Team& team;
  Device& device;
  RankStatus& status;

  bool graphs() const { return !options.graph_flag.empty() && device.has_graphs(); }
  bool eager() const { return !graphs() || options.eager; }
  bool cold() const { return options.cold && on_gpu(); }
  int repeats() const { return options.repeats > 0 ? options.repeats : on_gpu() ? 5 : 1; }
  Across across() const { return options.across.value_or(on_gpu() ? Across::kMax : Across::kMean); }

 private:
  bool on_gpu() const { return device.platform() == "cuda"; }
};

/// From here on an operation takes longer than its launches do, however many those are.
inline constexpr std::size_t kOutlastsLaunches = std::size_t{16} << 20;

/// How many operations of one size may be enqueued before the stream runs, where `most` small ones may. Larger
/// ones are more launches.
inline int operations_in_one_go(int most, std::size_t bytes) {
  constexpr std::size_t kSmall = std::size_t{1} << 20;
  if (bytes > kOutlastsLaunches) return std::numeric_limits<int>::max();  // as the stream runs ahead
  return bytes > kSmall ? std::max(1, most / 4) : most;
}

/// How many calls a graph holds at one size: `most` for small ones, fewer where that would take long, the
/// same on all ranks.
inline int calls_in_graph(int most, std::size_t bytes) {
  constexpr std::size_t kFullUpTo = std::size_t{4} << 20;
  constexpr std::size_t kLeast = 4;
  const auto wanted = static_cast<std::size_t>(most);
  if (bytes <= kFullUpTo || wanted <= kLeast) return most;
  const std::size_t share = wanted * (kFullUpTo >> 10) / (bytes >> 10);
  return static_cast<int>(share > kLeast ? share : kLeast);
}

}  // namespace pkcomm::perf
