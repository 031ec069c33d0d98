// The whole run as one JSON document, written when it has ended. Names are those of nccl-tests' JSON where it
// has the same thing; truth values are true and false, and what was not measured is null. The one file that
// includes the parser.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "report.hpp"

extern char** environ;

namespace pkcomm::perf {

namespace {

using Json = nlohmann::ordered_json;

// Of the surroundings only what speaks to the libraries that are measured: the rest is private.
Json relevant_environment() {
  Json list = Json::array();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    for (const char* prefix : {"PKCOMM_", "NCCL_", "CUDA_"}) {
      if (std::strncmp(*entry, prefix, std::strlen(prefix)) == 0) list.push_back(*entry);
    }
  }
  return list;
}

Json to_json(const std::optional<Figures>& figures) {
  if (!figures) return nullptr;
  return {{"time", figures->time_us}, {"alg_bw", figures->algbw}, {"bus_bw", figures->busbw}};
}

template <class Number>
Json or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json();
}

Json to_json(const Samples& samples) {
  const Summary& s = samples.summary;
  return {{"skipped_iterations", samples.skipped},
          {"min_us", s.min},
          {"max_us", s.max},
          {"avg_us", s.mean},
          {"p50_us", s.p50},
          {"p95_us", s.p95},
          {"p99_us", s.p99},
          {"stdev_us", s.stdev},
          {"cv_pct", s.cv_percent()},
          {"skew_us", samples.skew_us},
          {"times_us", samples.times_us}};
}

class JsonReport final : public Report {
 public:
  explicit JsonReport(std::string file) : file_(std::move(file)) {}

  void run_begins(const RunInfo& info) override {
    const Options& o = *info.options;
    options_ = &o;
    nranks_ = info.nranks();
    document_["version"] = 1;
    document_["start_time"] = timestamp();
    document_["args"] = o.arguments;
    document_["env"] = relevant_environment();
    document_["pkcomm_version"] = info.library_version;
    if (info.nccl) {
      document_["nccl"] = {
          {"version", info.nccl->version}, {"file", info.nccl->file}, {"nvls_enable", info.nccl->nvls}};
    }
    Json config = {{"nthreads", o.threads},
                   {"ngpus", o.processes},
                   {"ranks", info.nranks()},
                   {"platform", info.platform},
                   {"memory", o.memory == Memory::kHeap ? "heap" : "malloc"},
                   {"minimum_bytes", o.sizes.least},
                   {"maximum_bytes", o.sizes.most}};
    config[o.sizes.factor > 1 ? "step_factor" : "step_bytes"] =
        o.sizes.factor > 1 ? o.sizes.factor : o.sizes.step;
    config["warmup_iters"] = o.warmup;
    config["iterations"] = o.iterations;
    config["aggregated_iterations"] = o.aggregate;
    config["validation"] = o.checks;
    config["blocking_collectives"] = static_cast<int>(o.blocking);
    config["unalign"] = o.unalign;
    config["backends"] = Json::array();
    if (info.pkcomm) config["backends"].push_back("pkcomm");
    if (info.nccl) config["backends"].push_back("nccl");
    config["timing"] = info.eager ? "eager" : "graph";
    config["graph_calls"] = info.graph ? Json(o.graph_calls) : Json();
    config["repeats"] = info.repeats;
    config["cold"] = o.cold;
    config["bus_bandwidth_meaningful"] = info.nranks() > 1;
    config["times_are_gpu_performance"] = info.platform != "host";
    document_["config"] = std::move(config);
    Json devices = Json::array();
    for (const Place& d : info.places) {
      devices.push_back({{"rank", d.rank},
                         {"group", 0},
                         {"pid", d.pid},
                         {"hostname", d.host},
                         {"device", d.device},
                         {"bus_id", d.bus_id},
                         {"device_info", d.info}});
    }
    document_["devices"] = std::move(devices);
    document_["results"] = Json::array();
  }

  void row(const Row& row) override {
    Json entry = {{"collective", describe(row.collective).name},
                  {"size", row.bytes},
                  {"count", row.count},
                  {"type", row.type},
                  {"redop", row.redop},
                  {"root", row.root},
                  {"algorithm", row.algorithm},
                  {"mechanism", row.mechanism},
                  {"ctas", row.ctas}};
    add_half(entry, "out_of_place", row.out_of_place);
    add_half(entry, "in_place", row.in_place);
    entry["actual_iterations"] = options_->iterations;
    entry["forced_algorithm"] = row.forced.empty() ? Json() : Json(row.forced);
    document_["results"].push_back(std::move(entry));
  }

  Outcome run_ends(const Totals& totals) override {
    const bool okay = totals.wrong == 0;
    document_["out_of_bounds"] = {{"count", totals.checked ? Json(totals.wrong) : Json()},
                                  {"okay", totals.checked ? Json(okay) : Json()}};
    document_["average_bus_bandwidth"] = {{"bandwidth", totals.mean_busbw()}, {"meaningful", nranks_ > 1}};
    document_["failed_rows"] = totals.wrong_rows;
    document_["status"] = !totals.checked ? "UNCHECKED" : okay ? "OK" : "FAILED";
    document_["end_time"] = timestamp();
    return write();
  }

 private:
  void add_half(Json& entry, const char* key, const std::optional<Half>& half) {
    if (!half) {
      entry[key] = nullptr;
      return;
    }
    entry[key] = {{options_->host_time ? "cpu_time" : "time", half->time_us},
                  {"alg_bw", half->algbw},
                  {"bus_bw", half->busbw},
                  {"nwrong", or_null(half->wrong)},
                  {"guard_bytes_wrong", half->wrong ? Json(half->guard_bytes_wrong) : Json()}};
    if (half->graph) entry[key]["graph"] = to_json(half->graph);
    if (half->nccl) {
      Json nccl = to_json(half->nccl->figures);
      nccl["nwrong"] = or_null(half->nccl->wrong);
      if (half->nccl->graph) nccl["graph"] = to_json(half->nccl->graph);
      entry[key]["nccl"] = std::move(nccl);
      entry[key]["ratio"] = or_null(half->ratio());
      if (half->graph) entry[key]["graph_ratio"] = or_null(half->graph_ratio());
    }
    if (half->samples) entry[std::string(key) + "_per_iter"] = to_json(*half->samples);
  }

  Outcome write() const {
    // Arguments and host names may hold bytes that are no UTF-8: replaced, as JSON knows nothing else.
    const std::string text = document_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    std::FILE* out = file_ == "-" ? stdout : std::fopen(file_.c_str(), "we");
    if (out == nullptr) return Error{"cannot write " + file_ + ": " + std::strerror(errno)};
    const bool whole = std::fwrite(text.data(), 1, text.size(), out) == text.size();
    const bool flushed = out == stdout ? std::fflush(out) == 0 : std::fclose(out) == 0;
    if (!whole || !flushed) return Error{"cannot write " + file_ + ": " + std::strerror(errno)};
    return {};
  }

  std::string file_;
  const Options* options_ = nullptr;
  int nranks_ = 0;
  Json document_;
};

}  // namespace

std::unique_ptr<Report> make_json_report(const std::string& file) {
  return std::make_unique<JsonReport>(file);
}

}  // namespace pkcomm::perf
