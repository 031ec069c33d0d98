// The order of things in one half of a row: input, warm-up, timed iterations, single iterations where
// percentiles are wanted, checked iterations, and one gathering of the ranks' reports. Times are of a steady
// clock around n enqueues and one synchronisation, divided by n.
#include "bench.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "bandwidth.hpp"
#include "clock.hpp"

namespace pkcomm::perf {

namespace {

double seconds_since(std::int64_t start_ns) { return static_cast<double>(steady_ns() - start_ns) * 1e-9; }

// Runs on the stream.
void stamp(void* slot) { *static_cast<std::int64_t*>(slot) = steady_ns(); }

std::string without_blanks(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

double across_ranks(const std::vector<double>& seconds, Across how) {
  switch (how) {
    case Across::kRank0:
      return seconds.front();
    case Across::kMin:
      return *std::min_element(seconds.begin(), seconds.end());
    case Across::kMax:
      return *std::max_element(seconds.begin(), seconds.end());
    case Across::kMean:
      break;
  }
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

}  // namespace

Result<Bench> Bench::make(const Options& options, const Collective& collective, Team& team,
                          const Session& session, RankStatus& status) {
  constexpr std::size_t kLargestElement = 8;
  const std::size_t bytes =
      collective.has_data ? options.sizes.most + static_cast<std::size_t>(options.unalign) * kLargestElement
                          : 0;
  status.begin("the allocation of buffers for " + std::string(collective.name));
  Result<Buffer> send = Buffer::make(options.memory, bytes, session.comm());
  PERF_TRY(send);
  Result<Buffer> recv =
      Buffer::make(collective.into_heap ? Memory::kHeap : options.memory, bytes, session.comm());
  PERF_TRY(recv);
  status.end();
  return Bench(options, collective, team, session, status, std::move(send.value()), std::move(recv.value()));
}

Result<std::optional<Row>> Bench::measure(const Subject& subject, std::string* unsupported) {
  Row row;
  row.collective = collective_.id;
  row.forced = subject.forced;
  row.bytes = subject.bytes();
  row.count = subject.shape.count;
  row.type = collective_.has_data ? describe(subject.type).name : "none";
  row.redop = collective_.reduces ? name(subject.op) : "none";
  row.root = collective_.rooted ? subject.root : -1;
  const Result<bool> wanted = explain(subject, row);
  PERF_TRY(wanted);
  if (!wanted.value()) return std::optional<Row>{};

  Result<std::optional<Half>> out_of_place = measure_half(subject, false, unsupported);
  PERF_TRY(out_of_place);
  if (!out_of_place.value()) return std::optional<Row>{};
  row.out_of_place = std::move(out_of_place.value());
  if (collective_.in_place) {
    Result<std::optional<Half>> in_place = measure_half(subject, true, unsupported);
    PERF_TRY(in_place);
    row.in_place = std::move(in_place.value());
  }
  return std::optional<Row>(std::move(row));
}

// Fills in how it will be done; false where a forced algorithm would not be the one.
Result<bool> Bench::explain(const Subject& subject, Row& row) const {
  row.algorithm = row.mechanism = "-";
  if (collective_.explained_as < 0) return subject.forced.empty();
  pkcommExplainRequest_t request = PKCOMM_EXPLAIN_REQUEST_INITIALIZER;
  request.collective = static_cast<pkcommCollective_t>(collective_.explained_as);
  request.count = subject.shape.count;
  request.dtype = subject.type;
  request.op = subject.op == Op::kMulSum ? static_cast<pkcommRedOp_t>(PKCOMM_BUILTIN_OPS)
                                         : static_cast<pkcommRedOp_t>(subject.op);
  request.send_window = request.recv_window = options_.memory == Memory::kHeap ? 1 : 0;
  pkcommExplanation_t explanation{};
  explanation.size = sizeof explanation;
  PERF_TRY(check(pkcommExplain(&request, session_.comm(), &explanation, nullptr, 0), "pkcommExplain",
                 session_.comm()));
  if (explanation.chosen < 0 || explanation.chosen >= explanation.candidates) return subject.forced.empty();
  const pkcommCandidate_t& chosen = explanation.candidate[explanation.chosen];
  row.algorithm = chosen.algorithm;
  row.mechanism = without_blanks(chosen.mechanism);
  row.ctas = chosen.ctas;
  return subject.forced.empty() || subject.forced == row.algorithm;
}

Result<std::optional<Half>> Bench::measure_half(const Subject& subject, bool in_place,
                                                std::string* unsupported) {
  status_.begin(std::string(collective_.name) + ", " + std::to_string(subject.bytes()) + " bytes, " +
                (in_place ? "in place" : "out of place"));
  pkcommRedOp_t op = subject.op == Op::kMulSum ? pkcommSum : static_cast<pkcommRedOp_t>(subject.op);
  const bool own_op = collective_.reduces && subject.op == Op::kMulSum;
  if (own_op) {
    const std::uint64_t scalar = scalar_bits(pattern(subject, 0), team_.rank());
    PERF_TRY(check(
        pkcommRedOpCreatePreMulSum(&op, &scalar, subject.type, pkcommScalarHostImmediate, session_.comm()),
        "pkcommRedOpCreatePreMulSum", session_.comm()));
  }
  const Call call = make_call(subject, in_place, op);
  prepare_input(call, subject, ++seed_);

  Report report;
  std::vector<std::int64_t> stamps;
  for (int i = 0; i < options_.warmup; ++i) {
    const pkcommResult_t result = iterate(call);
    if (result == pkcommUnsupported &&
        i == 0) {  // on all ranks alike: the dispatcher decides the same everywhere
      *unsupported = pkcommGetLastError(nullptr);
      status_.end();
      return std::optional<Half>{};
    }
    PERF_TRY(check(result, collective_.name.data(), session_.comm()));
  }
  PERF_TRY(session_.synchronize());
  PERF_TRY(time_iterations(call, report));
  if (options_.wants_samples()) PERF_TRY(time_single_iterations(call, stamps));
  if (options_.checks > 0) PERF_TRY(check_data(call, subject, in_place, report));
  if (own_op) PERF_TRY(check(pkcommRedOpDestroy(op, session_.comm()), "pkcommRedOpDestroy", session_.comm()));

  Result<std::optional<Half>> half = combine(subject, report, stamps);
  status_.end();
  return half;
}

Call Bench::make_call(const Subject& subject, bool in_place, pkcommRedOp_t op) const {
  Call call;
  call.element = describe(subject.type).bytes;
  call.count = subject.shape.count;
  call.type = subject.type;
  call.op = op;
  call.seat = {team_.rank(), team_.nranks(), subject.root};
  call.comm = session_.comm();
  call.stream = session_.stream();
  const std::size_t shift = static_cast<std::size_t>(options_.unalign) * call.element;
  call.send = send_.data() + shift;
  call.recv = recv_.data() + shift;
  if (in_place) {
    const InPlace place = collective_.place(call.count, call.seat);
    call.send = recv_.data() + shift + place.send_at * call.element;
    call.recv = recv_.data() + shift + place.recv_at * call.element;
  }
  if (collective_.id == CollectiveId::kAllToAllV) set_pair_counts(call);
  return call;
}

PatternSpec Bench::pattern(const Subject& subject, std::uint64_t seed) const {
  return {subject.type, collective_.reduces, subject.op, team_.nranks(), seed};
}

void Bench::prepare_input(const Call& call, const Subject& subject, std::uint64_t seed) const {
  if (subject.shape.send == 0) return;
  const PatternTable input = PatternTable::of_input(pattern(subject, seed), team_.rank(), subject.shape.send);
  input.fill(static_cast<std::byte*>(const_cast<void*>(call.send)), 0, subject.shape.send);
}

// One iteration: one call, or as many as -m says.
pkcommResult_t Bench::iterate(const Call& call) const {
  if (options_.aggregate == 1) return collective_.run(call);
  pkcommResult_t first = collective_.grouped ? pkcommGroupStart() : pkcommSuccess;
  for (int i = 0; i < options_.aggregate && first == pkcommSuccess; ++i) first = collective_.run(call);
  if (!collective_.grouped) return first;
  const pkcommResult_t end = pkcommGroupEnd();
  return first != pkcommSuccess ? first : end;
}

Outcome Bench::wait_as_asked() const {
  if (options_.blocking == Blocking::kNone) return {};
  PERF_TRY(session_.synchronize());
  return options_.blocking == Blocking::kWaitAndBarrier ? session_.align() : Outcome{};
}

Outcome Bench::time_iterations(const Call& call, Report& report) const {
  const double operations = static_cast<double>(options_.iterations) * options_.aggregate;
  PERF_TRY(team_.barrier());
  PERF_TRY(session_.align());
  double elapsed = 0;
  double host = 0;
  std::int64_t start = steady_ns();
  for (int i = 0; i < options_.iterations; ++i) {
    if (options_.blocking == Blocking::kOutsideTime) {
      PERF_TRY(session_.align());
      start = steady_ns();
    }
    if (const pkcommResult_t result = iterate(call); result != pkcommSuccess) {
      return check(result, collective_.name.data(), session_.comm());
    }
    if (options_.blocking == Blocking::kOutsideTime) {
      host += seconds_since(start);
      PERF_TRY(session_.synchronize());
      elapsed += seconds_since(start);
    } else {
      PERF_TRY(wait_as_asked());
    }
  }
  if (options_.blocking != Blocking::kOutsideTime) {
    host = seconds_since(start);
    PERF_TRY(session_.synchronize());
    elapsed = seconds_since(start);
  }
  report.seconds = elapsed / operations;
  report.host_seconds = host / operations;
  return {};
}

// A time stamp runs on the stream behind each iteration: a second run, so that the first is not burdened with
// it.
Outcome Bench::time_single_iterations(const Call& call, std::vector<std::int64_t>& stamps) const {
  stamps.assign(static_cast<std::size_t>(options_.iterations) + 1, 0);
  PERF_TRY(team_.barrier());
  PERF_TRY(session_.align());
  const auto enqueue_stamp = [&](std::size_t i) {
    return check(pkcommStreamEnqueue(session_.stream(), stamp, &stamps[i]), "pkcommStreamEnqueue",
                 session_.comm());
  };
  PERF_TRY(enqueue_stamp(0));
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    PERF_TRY(check(iterate(call), collective_.name.data(), session_.comm()));
    PERF_TRY(enqueue_stamp(i));
    PERF_TRY(wait_as_asked());
  }
  return session_.synchronize();
}

// Never empty on success; on ranks other than 0 the half has no figures.
Result<std::optional<Half>> Bench::combine(const Subject& subject, const Report& mine,
                                           const std::vector<std::int64_t>& stamps) {
  Half half;
  Result<std::vector<Report>> reports = team_.collect(mine);
  PERF_TRY(reports);
  if (!stamps.empty()) {
    Result<Samples> samples = combine_samples(stamps);
    PERF_TRY(samples);
    half.samples = std::move(samples.value());
  }
  if (team_.rank() != 0) return std::optional<Half>(std::move(half));

  std::vector<double> seconds;
  std::vector<double> host_seconds;
  std::uint64_t wrong = 0;
  for (const Report& report : reports.value()) {
    seconds.push_back(report.seconds);
    host_seconds.push_back(report.host_seconds);
    wrong += report.wrong;
    half.guard_bytes_wrong += report.guard_bytes_wrong;
  }
  const double time_us = across_ranks(seconds, options_.across) * 1e6;
  const Bandwidth rate = bandwidth(collective_.id, team_.nranks(), subject.bytes(), time_us);
  half.time_us = options_.host_time ? across_ranks(host_seconds, options_.across) * 1e6 : time_us;
  half.algbw = rate.algbw;
  half.busbw = rate.busbw;
  if (options_.checks > 0) half.wrong = wrong;
  return std::optional<Half>(std::move(half));
}

Result<Samples> Bench::combine_samples(const std::vector<std::int64_t>& stamps) {
  const std::size_t each = stamps.size();
  const std::size_t ranks = team_.rank() == 0 ? static_cast<std::size_t>(team_.nranks()) : 0;
  std::vector<std::int64_t> all(ranks * each);
  PERF_TRY(team_.gather(stamps.data(), each * sizeof(std::int64_t), all.data()));
  Samples samples;
  if (team_.rank() != 0) return samples;

  std::vector<double> skews;
  for (std::size_t i = 1; i < each; ++i) {
    std::int64_t longest = 0;
    std::int64_t first_end = all[i];
    std::int64_t last_end = all[i];
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t* own = all.data() + rank * each;
      longest = std::max(longest, own[i] - own[i - 1]);
      first_end = std::min(first_end, own[i]);
      last_end = std::max(last_end, own[i]);
    }
    samples.times_us.push_back(static_cast<double>(longest) * 1e-3 / options_.aggregate);
    skews.push_back(static_cast<double>(last_end - first_end) * 1e-3);
  }
  samples.skipped = static_cast<std::size_t>(options_.skip_samples);
  samples.summary = summarize({samples.times_us.begin() + options_.skip_samples, samples.times_us.end()});
  samples.skew_us = summarize(skews).p50;
  return samples;
}

}  // namespace pkcomm::perf
