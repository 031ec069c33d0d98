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

/// Out of place or in place.
struct Half {
  double time_us = 0;
  double algbw = 0;
  double busbw = 0;
  std::optional<std::uint64_t>
      wrong;  // elements over all ranks and checks, guard bytes included; none: not checked
  std::uint64_t guard_bytes_wrong = 0;  // of `wrong`: written outside of the output
  std::optional<Samples> samples;
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

/// One line of the header.
struct Device {
  int rank = 0;
  int pid = 0;
  int device = 0;
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
      wrong += (*half)->wrong.value_or(0);
      bad = bad || (*half)->wrong.value_or(0) > 0;
    }
    wrong_rows += bad ? 1 : 0;
  }
};

}  // namespace pkcomm::perf
