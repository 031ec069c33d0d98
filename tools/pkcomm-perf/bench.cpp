// The order of things in one half of a row: every backend begins (input, warm-up, graph), then they take
// turns at being timed, then come single iterations where percentiles are wanted, the data checks, and one
// gathering of the ranks' times.
#include "bench.hpp"

#include <algorithm>
#include <memory>

#include "combine.hpp"
#include "trial.hpp"

namespace pkcomm::perf {

namespace {

std::string without_blanks(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

}  // namespace

Result<Bench> Bench::make(const Context& context, const Collective& collective,
                          const std::vector<Backend*>& backends) {
  constexpr std::size_t kLargestElement = 8;
  const Options& options = context.options;
  std::size_t bytes = 0;
  if (collective.has_data) {
    bytes = options.sizes.most + static_cast<std::size_t>(options.unalign) * kLargestElement;
    if (context.cold()) bytes = std::max(bytes, kColdBytes) + footprint(0);
  }
  context.status.begin("the allocation of buffers for " + std::string(collective.name));
  Bench bench(context, collective);
  for (Backend* const backend : backends) {
    if (!backend->has(collective)) continue;
    Result<Buffer> send = Buffer::make(*backend, options.memory, bytes);
    PERF_TRY(send);
    Result<Buffer> recv =
        Buffer::make(*backend, collective.into_heap ? Memory::kHeap : options.memory, bytes);
    PERF_TRY(recv);
    bench.contenders_.push_back({backend, std::move(send.value()), std::move(recv.value())});
  }
  context.status.end();
  return bench;
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
  const pkcommComm_t comm = contenders_.empty() ? nullptr : contenders_.front().backend->comm();
  if (collective_.explained_as < 0 || comm == nullptr) return subject.forced.empty();
  pkcommExplainRequest_t request = PKCOMM_EXPLAIN_REQUEST_INITIALIZER;
  request.collective = static_cast<pkcommCollective_t>(collective_.explained_as);
  request.count = subject.shape.count;
  request.dtype = subject.type;
  request.op = subject.op == Op::kMulSum ? static_cast<pkcommRedOp_t>(PKCOMM_BUILTIN_OPS)
                                         : static_cast<pkcommRedOp_t>(subject.op);
  request.send_window = request.recv_window = context_.options.memory == Memory::kHeap ? 1 : 0;
  pkcommExplanation_t explanation{};
  explanation.size = sizeof explanation;
  PERF_TRY(check(pkcommExplain(&request, comm, &explanation, nullptr, 0), "pkcommExplain", comm));
  if (explanation.chosen < 0 || explanation.chosen >= explanation.candidates) return subject.forced.empty();
  const pkcommCandidate_t& chosen = explanation.candidate[explanation.chosen];
  row.algorithm = chosen.algorithm;
  row.mechanism = without_blanks(chosen.mechanism);
  row.ctas = chosen.ctas;
  return subject.forced.empty() || subject.forced == row.algorithm;
}

// Never empty on success but where the first backend lacks the operation.
Result<std::optional<Half>> Bench::measure_half(const Subject& subject, bool in_place,
                                                std::string* unsupported) {
  context_.status.begin(std::string(collective_.name) + ", " + std::to_string(subject.bytes()) + " bytes, " +
                        (in_place ? "in place" : "out of place"));
  const std::uint64_t seed = ++seed_;
  std::vector<std::unique_ptr<Trial>> trials;
  for (Contender& contender : contenders_) {
    if (!contender.backend->can(collective_, subject.op)) continue;
    auto trial = std::make_unique<Trial>(context_, subject, in_place, *contender.backend, contender.send,
                                         contender.recv);
    std::string why_not;
    PERF_TRY(trial->begin(seed, &why_not));
    if (why_not.empty()) {
      trials.push_back(std::move(trial));
      continue;
    }
    *unsupported = std::move(why_not);
    if (&contender == &contenders_.front()) break;  // without it there is no row
  }
  if (trials.empty()) {
    if (unsupported->empty()) *unsupported = "the library that is measured has no such operation";
    context_.status.end();
    return std::optional<Half>{};
  }

  for (int i = 0; i < context_.repeats(); ++i) {
    for (const auto& trial : trials) PERF_TRY(trial->time());
  }
  std::vector<Iteration> samples;
  if (context_.options.wants_samples()) {
    Result<std::vector<Iteration>> series = trials.front()->sample();
    PERF_TRY(series);
    samples = std::move(series.value());
  }
  for (int round = 0; round < context_.options.checks; ++round) {
    ++seed_;
    for (const auto& trial : trials) {
      if (trial->backend().is_exact(collective_, subject.type, subject.op)) {
        PERF_TRY(trial->check(seed_, round));
      }
    }
  }
  for (const auto& trial : trials) PERF_TRY(trial->end());

  Result<Half> half = combine(context_, subject, trials, samples);
  PERF_TRY(half);
  context_.status.end();
  return std::optional<Half>(std::move(half.value()));
}

}  // namespace pkcomm::perf
