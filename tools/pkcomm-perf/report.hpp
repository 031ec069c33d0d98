// What happens to the rows: each way to report is told the same story in the same order, on rank 0 alone.
#pragma once

#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives.hpp"
#include "nccl_facts.hpp"
#include "options.hpp"
#include "row.hpp"

namespace pkcomm::perf {

/// What does not change during a run.
struct RunInfo {
  const Options* options = nullptr;
  std::vector<Place> places;  // in rank order
  std::string platform;
  bool pkcomm = true;             // whether it was measured
  std::optional<NcclFacts> nccl;  // where it was
  bool eager = true;              // calls one by one
  bool graph = false;             // calls in graphs; with `eager` the latter have columns of their own
  int repeats = 1;
  int library_version = 0;
  std::size_t staging_bytes = 0;  // of one rank
  std::size_t heap_limit_bytes = 0;

  int nranks() const { return static_cast<int>(places.size()); }
};

class Report {
 public:
  virtual ~Report() = default;
  virtual void run_begins(const RunInfo&) {}
  virtual void table_begins(const Collective&, const std::string& /*forced*/) {}
  virtual void row(const Row&) {}
  /// A sentence for the reader about the table at hand.
  virtual void note(const std::string&) {}
  virtual void table_ends(const Collective&, const Totals&, std::size_t /*heap_bytes*/) {}
  virtual Outcome run_ends(const Totals&) { return {}; }
};

std::unique_ptr<Report> make_text_report(std::FILE* out);
Result<std::unique_ptr<Report>> make_csv_report(const std::string& file);
std::unique_ptr<Report> make_json_report(const std::string& file);
std::unique_ptr<Report> make_plot(const std::string& file);

/// "2026-01-31 23:59:59", local time.
std::string timestamp();

}  // namespace pkcomm::perf
