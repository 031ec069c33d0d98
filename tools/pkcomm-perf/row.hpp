// One line of the table: what was measured, and what came out. Made on rank 0 from what all ranks gathered;
// the reports print nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collective_id.hpp"
#include "statistics.hpp"

namespace pkcomm::perf {

/// Times of single iterations, each the greatest of all ranks', in microseconds.
struct Samples {
  std::vector<double> times_us;
  Summary summary;  // without the leading ones that -K skips
  std::size_t skipped = 0;
  double skew_us = 0;  // median over iterations of (last rank's end - first rank's end)
};

struct Figures {
  double time_us = 0;
  double algbw = 0;
  double busbw = 0;
};

/// What NCCL made of the same.
struct Rival {
  Figures figures;
  std::optional<Figures> graph;
  std::optional<std::uint64_t> wrong;  // none: not checked, or rounded elsewhere by right
};

/// Out of place or in place.
struct Half : Figures {
  std::optional<Figures> graph;  // where calls were timed both one by one and in a graph
  std::optional<Rival> nccl;     // where it was measured beside pkcomm
  std::optional<std::uint64_t>
      wrong;  // elements over all ranks and checks, guard bytes included; none: not checked
  std::uint64_t guard_bytes_wrong = 0;  // of `wrong`: written outside of the output
  std::optional<Samples> samples;

  /// Time over NCCL's time: below 1 is faster. None where there is nothing to compare.
  std::optional<double> ratio() const { return nccl ? quotient(*this, nccl->figures) : std::nullopt; }
  std::optional<double> graph_ratio() const {
    return graph && nccl && nccl->graph ? quotient(*graph, *nccl->graph) : std::nullopt;
  }

 private:
  static std::optional<double> quotient(const Figures& ours, const Figures& theirs) {
    return theirs.time_us > 0 ? std::optional(ours.time_us / theirs.time_us) : std::nullopt;
  }
};

struct Row {
  CollectiveId collective = CollectiveId::kAllReduce;
  std::string forced;  // the one algorithm allowed, under --algorithm each
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::string type;   // "none" where there are no data
  std::string redop;  // "none" where nothing is reduced
  int root = -1;      // -1: none
  std::optional<Half> out_of_place;
  std::optional<Half> in_place;
  std::string algorithm;  // "-": not the dispatcher's matter
  std::string mechanism;
  int ctas = 0;
};

/// Where a rank runs: one line of the header.
struct Place {
  int rank = 0;
  int pid = 0;
  int device = 0;
  char bus_id[16] = {};
  char host[64] = {};
  char info[64] = {};
};

/// Totals of one table or of the whole run.
struct Totals {
  std::size_t rows = 0;
  std::size_t wrong_rows = 0;
  std::uint64_t wrong = 0;
  bool checked = false;
  double busbw_sum = 0;  // over halves
  std::size_t halves = 0;

  double mean_busbw() const { return halves > 0 ? busbw_sum / static_cast<double>(halves) : 0; }

  void add(const Row& row) {
    ++rows;
    bool bad = false;
    for (const auto* half : {&row.out_of_place, &row.in_place}) {
      if (!*half) continue;
      ++halves;
      busbw_sum += (*half)->busbw;
      checked = checked || (*half)->wrong.has_value();
      const std::uint64_t rival_wrong = (*half)->nccl ? (*half)->nccl->wrong.value_or(0) : 0;
      wrong += (*half)->wrong.value_or(0) + rival_wrong;
      bad = bad || (*half)->wrong.value_or(0) + rival_wrong > 0;
    }
    wrong_rows += bad ? 1 : 0;
  }
};

}  // namespace pkcomm::perf
