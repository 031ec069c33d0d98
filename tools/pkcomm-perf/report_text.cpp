// The table for people and for parsers of nccl-tests' output: its first 13 columns have the same names,
// order, widths and number formats; algorithm, mechanism and CTAs follow, then what --graph --eager,
// --backend, --percentiles, --skew and -S add. Lines that are not rows begin with '#'. Each line is
// flushed, so a reader at the other end of a pipe sees it at once.
#include <cinttypes>

#include "report.hpp"

namespace pkcomm::perf {

namespace {

// Two decimals, fewer where they would not fit, then an exponent: nccl-tests' way of filling a column.
std::string fitted(double value, int width) {
  char text[32];
  for (int decimals = 2; decimals >= 0; --decimals) {
    if (std::snprintf(text, sizeof text, "%*.*f", width, decimals, value) <= width) return text;
  }
  std::snprintf(text, sizeof text, "%*.*e", width, width >= 7 ? 1 : 0, value);
  return text;
}

std::string version_in_words(int code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

class TextReport final : public Report {
 public:
  explicit TextReport(std::FILE* out) : out_(out) {}

  void run_begins(const RunInfo& info) override {
    info_ = info;
    const Options& o = *info.options;
    const bool factor = o.sizes.factor > 1;
    std::fprintf(out_, "# pkcomm-perf version %s pkcomm-headers=%d pkcomm-library=%d\n",
                 version_in_words(PKCOMM_VERSION).c_str(), PKCOMM_VERSION, info.library_version);
    std::fprintf(out_,
                 "# nThread %d nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d iters: %d "
                 "agg iters: %d validation: %d graph: %d unalign: %d\n",
                 o.threads, o.processes, o.sizes.least, o.sizes.most, factor ? o.sizes.factor : o.sizes.step,
                 factor ? "factor" : "bytes", o.warmup, o.iterations, o.aggregate, o.checks,
                 info.graph ? o.graph_replays : 0, o.unalign);
    std::fprintf(out_, "#\n# Using devices\n");
    for (const Place& d : info.places) {
      std::fprintf(out_, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", d.rank, 0, d.pid,
                   d.host, d.device, d.bus_id, d.info);
    }
    std::fprintf(out_, "# platform: %s, buffers: %s\n", info.platform.c_str(),
                 o.memory == Memory::kHeap ? "symmetric heap" : "ordinary memory");
    if (info.nccl) {
      std::fprintf(out_, "# NCCL %s from %s, NCCL_NVLS_ENABLE=%s, %s\n", info.nccl->version.c_str(),
                   info.nccl->file.c_str(), info.nccl->nvls.c_str(),
                   info.pkcomm ? "in turn with pkcomm; ratio is pkcomm's time over NCCL's"
                               : "alone: all figures are NCCL's");
    }
    if (info.graph) {
      std::fprintf(out_, "# graph: %d calls captured in one (fewer above 4 MiB), %s\n", o.graph_calls,
                   info.eager ? "in columns of its own" : "in the time columns");
    }
    if (info.repeats > 1) std::fprintf(out_, "# times are medians of %d repetitions\n", info.repeats);
    if (info.platform == "host") {
      std::fprintf(
          out_, "# host platform: these times show that it works; they are not the performance of a GPU\n");
    }
    if (info.nranks() == 1) {
      std::fprintf(
          out_,
          "# 1 rank: nothing crosses a link, so busbw is 0 and has no meaning (-g 4 runs four ranks)\n");
    }
    std::fflush(out_);
  }

  void table_begins(const Collective& collective, const std::string& forced) override {
    const bool per_iteration = info_.options->per_iteration;
    const char* time = info_.options->host_time ? "cputime" : "time";
    std::fprintf(out_, "#\n# Collective test starting: %.*s%s%s\n#\n",
                 static_cast<int>(collective.name.size()), collective.name.data(),
                 forced.empty() ? "" : ", algorithm ", forced.c_str());
    if (!collective.in_place) note("in place: not defined for this operation");
    const std::string half_names =
        half_header(time, "algbw", "busbw", "#wrong", "i_min", "i_max", "i_p99", "i_cv%");
    const std::string half_units = half_header("(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", "(%)");
    std::fprintf(out_, "# %10s  %12s  %8s  %6s  %6s  %s\n", "", "", "", "", "",
                 per_iteration ? "            out-of-place (+ per-iteration)                                "
                                 "in-place (+ per-iteration)"
                               : "         out-of-place                       in-place          ");
    std::fprintf(out_, "# %10s  %12s  %8s  %6s  %6s%s%s%s\n", "size", "count", "type", "redop", "root",
                 half_names.c_str(), half_names.c_str(), extra_header(true).c_str());
    std::fprintf(out_, "# %10s  %12s  %8s  %6s  %6s%s%s%s\n", "(B)", "(elements)", "", "", "",
                 half_units.c_str(), half_units.c_str(), extra_header(false).c_str());
    std::fflush(out_);
  }

  void row(const Row& row) override {
    std::fprintf(out_, "%12zu  %12zu  %8s  %6s  %6d", row.bytes, row.count, row.type.c_str(),
                 row.redop.c_str(), row.root);
    half(row.out_of_place);
    half(row.in_place);
    std::fprintf(out_, "  %-16s  %-12s  %4d", row.algorithm.c_str(), row.mechanism.c_str(), row.ctas);
    for (const auto* each : {&row.out_of_place, &row.in_place}) comparisons(*each);
    for (const auto* each : {&row.out_of_place, &row.in_place}) extras(*each);
    if (info_.options->timestamps) std::fprintf(out_, "%21s", timestamp().c_str());
    std::fprintf(out_, "\n");
    std::fflush(out_);
  }

  void note(const std::string& text) override {
    std::fprintf(out_, "# %s\n", text.c_str());
    std::fflush(out_);
  }

  void table_ends(const Collective& collective, const Totals& totals, std::size_t heap_bytes) override {
    if (info_.options->checks == 0) {
      std::fprintf(out_, "# %-20s : N/A, not checked (-c 0)\n", "Out of bounds values");
    } else {
      std::fprintf(out_, "# %-20s : %" PRIu64 " %s\n", "Out of bounds values", totals.wrong,
                   totals.wrong > 0 ? "FAILED" : "OK");
    }
    std::fprintf(out_, "# %-20s : %g %s\n", "Avg bus bandwidth", totals.mean_busbw(),
                 info_.nranks() == 1 ? "(1 rank: no meaning)" : "");
    if (info_.options->memory_report) {
      std::fprintf(out_, "# %-20s : staging %s, heap %s of at most %s (each rank)\n", "Memory",
                   in_words(info_.staging_bytes).c_str(), in_words(heap_bytes).c_str(),
                   in_words(info_.heap_limit_bytes).c_str());
    }
    std::fprintf(out_, "#\n# Collective test concluded: %.*s\n", static_cast<int>(collective.name.size()),
                 collective.name.data());
    std::fflush(out_);
  }

  Outcome run_ends(const Totals& totals) override {
    if (totals.wrong > 0) {
      std::fprintf(out_, "# FAILED: %" PRIu64 " wrong values, in %zu of %zu rows\n", totals.wrong,
                   totals.wrong_rows, totals.rows);
    } else {
      std::fprintf(out_, "# %zu rows, %s\n", totals.rows,
                   totals.checked ? "0 wrong values: OK" : "data not checked");
    }
    return std::fflush(out_) == 0 ? Outcome{} : Error{"the table could not be written"};
  }

 private:
  std::string half_header(const char* time, const char* algbw, const char* busbw, const char* wrong,
                          const char* min, const char* max, const char* p99, const char* cv) const {
    char text[128];
    std::snprintf(text, sizeof text, "  %7s  %6s  %6s  %6s", time, algbw, busbw, wrong);
    std::string all = text;
    if (info_.options->per_iteration) {
      std::snprintf(text, sizeof text, "  %7s  %7s  %7s  %7s", min, max, p99, cv);
      all += text;
    }
    return all;
  }

  // Headings of what follows the first 13 columns.
  std::string extra_header(bool names) const {
    char text[128];
    std::snprintf(text, sizeof text, "  %-16s  %-12s  %4s", names ? "algorithm" : "",
                  names ? "mechanism" : "", names ? "CTAs" : "");
    std::string all = text;
    for (const char* half : {"out_", "in_"}) {
      const auto add = [&](const char* what, const char* unit) {
        std::snprintf(text, sizeof text, "  %10s", names ? (std::string(half) + what).c_str() : unit);
        all += text;
      };
      const auto add_pair = [&](const char* time, const char* rate) {
        add(time, "(us)");
        add(rate, "(GB/s)");
      };
      if (both_ways()) add_pair("graph", "g_busbw");
      if (!compared()) continue;
      add_pair("nccl", "n_busbw");
      add("ratio", "");
      if (!both_ways()) continue;
      add_pair("n_graph", "ng_busbw");
      add("g_ratio", "");
    }
    for (const char* half : {"out_", "in_"}) {
      const auto add = [&](const char* what, bool wanted) {
        if (!wanted) return;
        std::snprintf(text, sizeof text, "  %8s", names ? (std::string(half) + what).c_str() : "(us)");
        all += text;
      };
      for (const char* what : {"min", "p50", "p99", "max"}) add(what, info_.options->percentiles);
      add("skew", info_.options->skew);
    }
    if (info_.options->timestamps) {
      std::snprintf(text, sizeof text, "%21s", names ? "timestamp" : "");
      all += text;
    }
    return all;
  }

  // An operation without an in-place form has numbers that parsers can read and that say nothing.
  void half(const std::optional<Half>& half) {
    std::fprintf(out_, "  %7s  %6s  %6s", half ? fitted(half->time_us, 7).c_str() : "nan",
                 half ? fitted(half->algbw, 6).c_str() : "nan",
                 half ? fitted(half->busbw, 6).c_str() : "nan");
    if (half && half->wrong) {
      std::fprintf(out_, "  %6g", static_cast<double>(*half->wrong));
    } else {
      std::fprintf(out_, "  %6s", "N/A");
    }
    if (!info_.options->per_iteration) return;
    const bool have = half && half->samples;
    const Summary s = have ? half->samples->summary : Summary{};
    for (const double value : {s.min, s.max, s.p99, s.cv_percent()}) {
      std::fprintf(out_, "  %7s", have ? fitted(value, 7).c_str() : "nan");
    }
  }

  bool compared() const { return info_.pkcomm && info_.nccl; }
  bool both_ways() const { return info_.eager && info_.graph; }

  void comparisons(const std::optional<Half>& half) {
    const auto print = [&](std::optional<double> value) {
      std::fprintf(out_, "  %10s", value ? fitted(*value, 7).c_str() : "nan");
    };
    const auto print_pair = [&](const std::optional<Figures>& figures) {
      print(figures ? std::optional(figures->time_us) : std::nullopt);
      print(figures ? std::optional(figures->busbw) : std::nullopt);
    };
    const auto print_ratio = [&](std::optional<double> ratio) {
      if (ratio) {
        std::fprintf(out_, "  %10.3f", *ratio);
      } else {
        print(ratio);
      }
    };
    using Maybe = std::optional<Figures>;
    const bool rival = half && half->nccl;
    if (both_ways()) print_pair(half ? half->graph : Maybe{});
    if (!compared()) return;
    print_pair(rival ? Maybe(half->nccl->figures) : Maybe{});
    print_ratio(half ? half->ratio() : std::nullopt);
    if (!both_ways()) return;
    print_pair(rival ? half->nccl->graph : Maybe{});
    print_ratio(half ? half->graph_ratio() : std::nullopt);
  }

  void extras(const std::optional<Half>& half) {
    const bool have = half && half->samples;
    const auto print = [&](double value) {
      std::fprintf(out_, "  %7s", have ? fitted(value, 7).c_str() : "nan");
    };
    const Summary s = have ? half->samples->summary : Summary{};
    if (info_.options->percentiles) {
      for (const double value : {s.min, s.p50, s.p99, s.max}) print(value);
    }
    if (info_.options->skew) print(have ? half->samples->skew_us : 0);
  }

  std::FILE* out_;
  RunInfo info_;
};

}  // namespace

std::unique_ptr<Report> make_text_report(std::FILE* out) { return std::make_unique<TextReport>(out); }

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

}  // namespace pkcomm::perf
