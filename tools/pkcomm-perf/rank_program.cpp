// Every loop here runs the same on all ranks: what decides is on the command line, or came from rank 0, or is
// the dispatcher's, which is a pure function. So no rank waits in a call that another has skipped.
#include "rank_program.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "backend_nccl.hpp"
#include "bench.hpp"
#include "report.hpp"
#include "supervisor.hpp"

namespace pkcomm::perf {

namespace {

// A line on a terminal that is overwritten, and gone before anything else is printed.
class Progress {
 public:
  explicit Progress(bool wanted) : shown_on_(wanted && isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
  void show(const std::string& text) {
    if (!shown_on_) return;
    std::fprintf(stderr, "\r\033[K%s ...", text.c_str());
    std::fflush(stderr);
    visible_ = true;
  }
  void clear() {
    if (!visible_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    visible_ = false;
  }

 private:
  bool shown_on_;
  bool visible_ = false;
};

class RankProgram {
 public:
  RankProgram(const Options& options, Team team, Device& device, RankStatus& status)
      : options_(options),
        team_(std::move(team)),
        device_(device),
        status_(status),
        context_{options_, team_, device_, status_},
        progress_(team_.rank() == 0) {}

  Result<int> run() {
    PERF_TRY(open_reports());
    PERF_TRY(start_nccl());
    std::vector<std::string> forced = {""};
    bool first = true;
    for (std::size_t i = 0; i < forced.size(); ++i) {
      PERF_TRY(start_pkcomm(forced[i]));
      if (first) {
        PERF_TRY(begin_run());
        if (options_.algorithm == "each") PERF_TRY(find_algorithms(forced));
        first = false;
      }
      for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
        for (const CollectiveId id : options_.collectives) PERF_TRY(run_table(describe(id), forced[i]));
      }
      if (pkcomm_) PERF_TRY(pkcomm_->finalize());
      PERF_TRY(team_.barrier());
      pkcomm_.reset();
    }
    if (nccl_) PERF_TRY(nccl_->close());
    for (const auto& report : reports_) PERF_TRY(report->run_ends(whole_));
    return whole_.wrong > 0 ? kExitWrongData : 0;
  }

 private:
  Outcome open_reports() {
    if (team_.rank() != 0) return {};
    const bool stdout_taken = options_.csv == "-" || options_.json == "-";
    reports_.push_back(make_text_report(stdout_taken ? stderr : stdout));
    if (!options_.csv.empty()) {
      Result<std::unique_ptr<Report>> csv = make_csv_report(options_.csv);
      PERF_TRY(csv);
      reports_.push_back(std::move(csv.value()));
    }
    if (!options_.json.empty()) reports_.push_back(make_json_report(options_.json));
    if (!options_.plot.empty()) reports_.push_back(make_plot(options_.plot));
    return {};
  }

  // The library reads its environment when a communicator starts. One rank of each process writes it while
  // the others wait; writing the same value again is harmless.
  Outcome force_algorithm(const std::string& name) {
    PERF_TRY(team_.barrier());
    if (options_.algorithm == "each" && team_.rank() % options_.threads == 0) {
      if (name.empty()) {
        unsetenv("PKCOMM_ALGORITHM");
      } else {
        setenv("PKCOMM_ALGORITHM", name.c_str(), 1);
      }
    }
    return team_.barrier();
  }

  Outcome start_nccl() {
    if (!options_.with_nccl) return {};
    status_.begin("the start of NCCL");
    Result<std::unique_ptr<NcclBackend>> nccl = open_nccl(options_, team_, device_);
    PERF_TRY(nccl);
    nccl_ = std::move(nccl.value());
    status_.end();
    return {};
  }

  Outcome start_pkcomm(const std::string& algorithm) {
    PERF_TRY(force_algorithm(algorithm));
    if (!options_.with_pkcomm) return {};
    status_.begin("the start of the communicator");
    Result<std::unique_ptr<PkcommBackend>> pkcomm = open_pkcomm(options_, team_, device_);
    PERF_TRY(pkcomm);
    pkcomm_ = std::move(pkcomm.value());
    status_.end();
    return {};
  }

  Outcome begin_run() {
    pkcommCommProperties_t properties{};
    properties.device = device_.index();
    if (pkcomm_) {
      const Result<pkcommCommProperties_t> found = pkcomm_->properties();
      PERF_TRY(found);
      properties = found.value();
    }
    Place mine;
    mine.rank = team_.rank();
    mine.pid = static_cast<int>(getpid());
    mine.device = properties.device;
    gethostname(mine.host, sizeof mine.host - 1);
    std::snprintf(mine.bus_id, sizeof mine.bus_id, "%s", device_.bus_id().c_str());
    std::snprintf(mine.info, sizeof mine.info, "%s", device_.name().c_str());
    Result<std::vector<Place>> places = team_.collect(mine);
    PERF_TRY(places);
    RunInfo info;
    info.options = &options_;
    info.places = std::move(places.value());
    info.platform = device_.platform();
    info.pkcomm = pkcomm_ != nullptr;
    if (nccl_) info.nccl = nccl_->facts();
    info.eager = context_.eager();
    info.graph = context_.graphs();
    info.repeats = context_.repeats();
    info.staging_bytes = properties.staging_bytes;
    info.heap_limit_bytes = properties.heap_limit_bytes;
    PERF_TRY(check(pkcommGetVersion(&info.library_version), "pkcommGetVersion"));
    for (const auto& report : reports_) report->run_begins(info);
    if (team_.rank() == 0) note_what_is_ignored();
    return {};
  }

  // What was asked for and this platform lacks; said where other flags without effect are.
  void note_what_is_ignored() const {
    const auto note = [](const std::string& flag, const char* why) {
      std::fprintf(stderr, "pkcomm-perf: %s: %s\n", flag.c_str(), why);
    };
    if (!options_.graph_flag.empty() && !context_.graphs()) {
      note(options_.graph_flag, "graphs belong to the CUDA platform; timed without");
    }
    if (options_.cold && !context_.cold()) note("--cold", "it belongs to the CUDA platform; timed without");
  }

  // The algorithms that are legal somewhere in the sweep, behind the dispatcher's own choice.
  Outcome find_algorithms(std::vector<std::string>& forced) const {
    std::set<std::string> names;
    for (const CollectiveId id : options_.collectives) {
      const Collective& collective = describe(id);
      if (collective.explained_as < 0) continue;
      for (std::optional<std::size_t> size = options_.sizes.least; size; size = options_.sizes.after(*size)) {
        pkcommExplainRequest_t request = PKCOMM_EXPLAIN_REQUEST_INITIALIZER;
        request.collective = static_cast<pkcommCollective_t>(collective.explained_as);
        request.dtype = options_.types.front();
        request.count = collective.shape(*size / describe(request.dtype).bytes, team_.nranks()).count;
        request.send_window = request.recv_window = options_.memory == Memory::kHeap ? 1 : 0;
        pkcommExplanation_t explanation{};
        explanation.size = sizeof explanation;
        PERF_TRY(check(pkcommExplain(&request, pkcomm_->comm(), &explanation, nullptr, 0), "pkcommExplain"));
        for (int i = 0; i < explanation.candidates; ++i) {
          if (explanation.candidate[i].predicted_us >= 0) names.insert(explanation.candidate[i].algorithm);
        }
      }
    }
    forced.insert(forced.end(), names.begin(), names.end());
    return {};
  }

  Outcome run_table(const Collective& collective, const std::string& forced) {
    if (!forced.empty() && collective.explained_as < 0) return {};
    progress_.show(std::string(collective.name));
    std::vector<Backend*> backends;
    if (pkcomm_) backends.push_back(pkcomm_.get());
    if (nccl_) backends.push_back(nccl_.get());
    Result<Bench> bench = Bench::make(context_, collective, backends);
    PERF_TRY(bench);
    progress_.clear();
    for (const auto& report : reports_) report->table_begins(collective, forced);
    table_ = {};
    const std::vector<pkcommDataType_t> one_type = {options_.types.front()};
    const std::vector<Op> one_op = {Op::kSum};
    std::vector<int> roots = {collective.rooted ? options_.root : 0};
    if (collective.rooted && options_.all_roots) {
      roots.clear();
      for (int root = 0; root < team_.nranks(); ++root) roots.push_back(root);
    }
    for (const pkcommDataType_t type : collective.has_data ? options_.types : one_type) {
      for (const Op op : collective.reduces ? options_.ops : one_op) {
        for (const int root : roots) {
          PERF_TRY(run_sizes(Subject{&collective, type, op, root, {}, forced}, bench.value()));
        }
      }
    }
    std::size_t heap_bytes = 0;
    if (pkcomm_) {
      const Result<pkcommCommProperties_t> now = pkcomm_->properties();
      PERF_TRY(now);
      heap_bytes = now.value().heap_bytes;
    }
    for (const auto& report : reports_) report->table_ends(collective, table_, heap_bytes);
    return team_.barrier();  // buffers go when nobody uses them any more
  }

  // Sizes that come to the same number of elements give one row.
  Outcome run_sizes(Subject subject, Bench& bench) {
    const Collective& collective = *subject.collective;
    std::optional<std::size_t> last_count;
    for (std::optional<std::size_t> size = options_.sizes.least; size; size = options_.sizes.after(*size)) {
      subject.shape = collective.shape(*size / describe(subject.type).bytes, team_.nranks());
      if (last_count == subject.shape.count) continue;
      last_count = subject.shape.count;
      progress_.show(std::string(collective.name) + " " + std::string(describe(subject.type).name) + " " +
                     in_words(subject.bytes()));
      std::string unsupported;
      const Result<std::optional<Row>> row = bench.measure(subject, &unsupported);
      PERF_TRY(row);
      progress_.clear();
      if (row.value() && team_.rank() == 0) {
        table_.add(*row.value());
        whole_.add(*row.value());
        for (const auto& report : reports_) report->row(*row.value());
      }
      if (!unsupported.empty()) {
        for (const auto& report : reports_) {
          report->note(std::to_string(subject.bytes()) + " bytes of " +
                       std::string(describe(subject.type).name) +
                       (row.value() ? ", NCCL left out: " : " left out, unsupported: ") + unsupported);
        }
      }
      if (!collective.has_data) break;
    }
    return {};
  }

  const Options& options_;
  Team team_;
  Device& device_;
  RankStatus& status_;
  Context context_;
  std::unique_ptr<NcclBackend> nccl_;
  std::unique_ptr<PkcommBackend> pkcomm_;
  Progress progress_;
  std::vector<std::unique_ptr<Report>> reports_;  // empty but on rank 0
  Totals table_;
  Totals whole_;
};

}  // namespace

Result<int> run_rank(const Options& options, const MeetingPoint& where, int rank, int nranks,
                     RankStatus& status) {
  Result<Team> team = Team::join(where, rank, nranks, options.join_timeout_s);
  PERF_TRY(team);
  status.begin("the start of the device");
  Result<std::unique_ptr<Device>> device = open_device(options.platform, rank, options.null_stream);
  PERF_TRY(device);
  status.end();
  RankProgram program(options, std::move(team.value()), *device.value(), status);
  Result<int> result = program.run();
  // Noted before the sockets close: the others fail when they see that, and must not be the first to have
  // said so.
  if (!result.ok()) status.fail(result.error().text, result.error().hearsay);
  return result;
}

}  // namespace pkcomm::perf
