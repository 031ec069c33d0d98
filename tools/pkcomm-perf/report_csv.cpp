// One line for each half of a row, with a heading; fields that do not apply are empty. Written as the run
// goes on.
#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "report.hpp"

namespace pkcomm::perf {

namespace {

class CsvReport final : public Report {
 public:
  CsvReport(std::FILE* out, std::string file) : out_(out), file_(std::move(file)) {}
  ~CsvReport() override {
    if (out_ != stdout) std::fclose(out_);
  }

  void run_begins(const RunInfo& info) override {
    nranks_ = info.nranks();
    iterations_ = info.options->iterations;
    platform_ = info.platform;
    backend_ = info.pkcomm ? "pkcomm" : "nccl";
    timing_ = info.eager ? "eager" : "graph";
    repeats_ = info.repeats;
    std::fprintf(
        out_,
        "collective,platform,ranks,size_bytes,count,type,redop,root,placement,time_us,algbw_gbps,busbw_gbps,"
        "wrong,min_us,p50_us,p95_us,p99_us,max_us,skew_us,iterations,algorithm,mechanism,ctas,backend,timing,"
        "repeats,graph_us,graph_busbw_gbps,nccl_us,nccl_busbw_gbps,ratio,nccl_wrong,nccl_graph_us,"
        "nccl_graph_busbw_gbps,graph_ratio\n");
  }

  void row(const Row& row) override {
    half(row, row.out_of_place, "out_of_place");
    half(row, row.in_place, "in_place");
    std::fflush(out_);
  }

  Outcome run_ends(const Totals&) override {
    if (std::fflush(out_) != 0 || std::ferror(out_) != 0) return Error{"cannot write " + file_};
    return {};
  }

 private:
  void half(const Row& row, const std::optional<Half>& half, const char* placement) {
    if (!half) return;
    const std::string collective(describe(row.collective).name);
    std::fprintf(out_, "%s,%s,%d,%zu,%zu,%s,%s,%d,%s,%.3f,%.6g,%.6g,", collective.c_str(), platform_.c_str(),
                 nranks_, row.bytes, row.count, row.type.c_str(), row.redop.c_str(), row.root, placement,
                 half->time_us, half->algbw, half->busbw);
    if (half->wrong) std::fprintf(out_, "%" PRIu64, *half->wrong);
    if (half->samples) {
      const Summary& s = half->samples->summary;
      std::fprintf(out_, ",%.3f,%.3f,%.3f,%.3f,%.3f,%.3f", s.min, s.p50, s.p95, s.p99, s.max,
                   half->samples->skew_us);
    } else {
      std::fputs(",,,,,,", out_);
    }
    std::fprintf(out_, ",%d,%s,%s,%d,%s,%s,%d", iterations_, row.algorithm.c_str(), row.mechanism.c_str(),
                 row.ctas, backend_, timing_, repeats_);
    figures(half->graph);
    figures(half->nccl ? std::optional(half->nccl->figures) : std::nullopt);
    ratio(half->ratio());
    if (half->nccl && half->nccl->wrong) {
      std::fprintf(out_, ",%" PRIu64, *half->nccl->wrong);
    } else {
      std::fputc(',', out_);
    }
    figures(half->nccl ? half->nccl->graph : std::nullopt);
    ratio(half->graph_ratio());
    std::fputc('\n', out_);
  }

  void figures(const std::optional<Figures>& figures) {
    if (figures) {
      std::fprintf(out_, ",%.3f,%.6g", figures->time_us, figures->busbw);
    } else {
      std::fputs(",,", out_);
    }
  }

  void ratio(std::optional<double> ratio) {
    if (ratio) {
      std::fprintf(out_, ",%.4f", *ratio);
    } else {
      std::fputc(',', out_);
    }
  }

  std::FILE* out_;
  std::string file_;
  int nranks_ = 0;
  int iterations_ = 0;
  int repeats_ = 1;
  const char* backend_ = "";
  const char* timing_ = "";
  std::string platform_;
};

}  // namespace

Result<std::unique_ptr<Report>> make_csv_report(const std::string& file) {
  std::FILE* out = file == "-" ? stdout : std::fopen(file.c_str(), "we");
  if (out == nullptr) return Error{"cannot write " + file + ": " + std::strerror(errno)};
  return std::unique_ptr<Report>(std::make_unique<CsvReport>(out, file));
}

}  // namespace pkcomm::perf
