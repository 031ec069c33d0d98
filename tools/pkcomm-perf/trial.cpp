// Calls and times. How a stretch of work is timed is the device's matter (device.hpp); what is timed is n
// calls, divided by n. Where the user wants a wait after each call (-z), it is the wall's clock around
// them, on every device.
#include "trial.hpp"

#include <algorithm>

#include "clock.hpp"
#include "ranges.hpp"

namespace pkcomm::perf {

namespace {

double seconds_since(std::int64_t start_ns) { return static_cast<double>(steady_ns() - start_ns) * 1e-9; }

}  // namespace

Outcome Trial::begin(std::uint64_t seed, std::string* unsupported) {
  label_ = std::string(backend_.name()) + " " + std::string(collective_.name) + " " +
           std::to_string(subject_.bytes());
  const std::uint64_t scalar =
      subject_.op == Op::kMulSum
          ? scalar_bits(subject_.pattern(context_.team.nranks(), seed), context_.team.rank())
          : 0;
  if (collective_.reduces) {
    const Result<pkcommRedOp_t> op = backend_.make_op(subject_.op, subject_.type, &scalar);
    PERF_TRY(op);
    op_ = op.value();
  }
  graph_calls_ = calls_in_graph(options_.graph_calls, subject_.bytes());
  std::size_t slots = 1;
  if (context_.cold()) {
    const int in_one_go = std::max(graph_calls_, device_.most_operations());
    slots = std::clamp<std::size_t>(kColdBytes / slot_bytes(), 1, static_cast<std::size_t>(in_one_go));
    PERF_TRY(device_.chill());  // what it allocates it has before anything is timed
  }
  if (options_.wants_samples()) {
    const int in_one_go = options_.blocking != Blocking::kNone ? options_.iterations : batch();
    PERF_TRY(device_.prepare_sampling(std::min(options_.iterations, in_one_go)));
  }
  for (std::size_t slot = 0; slot < slots; ++slot) {
    calls_.push_back(make_call(slot));
    PERF_TRY(prepare_input(calls_.back(), seed));
  }
  // From here on operations wait for other ranks, so none may still allocate or free.
  PERF_TRY(context_.team.barrier());
  const int warmup = std::max(device_.least_warmup(), options_.warmup);
  for (int i = 0; i < warmup; ++i) {
    PERF_TRY(iterate(i == 0 ? unsupported : nullptr));
    if (!unsupported->empty()) return end();
  }
  PERF_TRY(align());  // its kernel too must be loaded before a gate closes
  PERF_TRY(settle());
  return context_.graphs() ? capture() : Outcome{};
}

Outcome Trial::time() {
  if (context_.eager()) {
    const bool waiting = options_.blocking != Blocking::kNone;
    const Result<Elapsed> elapsed = waiting ? time_waiting() : time_eager();
    PERF_TRY(elapsed);
    const double operations = static_cast<double>(options_.iterations) * options_.aggregate;
    series_.eager.push_back(elapsed.value().seconds / operations);
    series_.host.push_back(elapsed.value().host_seconds / operations);
  }
  if (graph_) {
    PERF_TRY(context_.team.barrier());
    const int replays = context_.cold() ? 1 : options_.graph_replays;
    const Result<Elapsed> elapsed = device_.time([&] { return align(); },
                                                 [&]() -> Outcome {
                                                   for (int i = 0; i < replays; ++i)
                                                     PERF_TRY(graph_->launch());
                                                   return {};
                                                 });
    PERF_TRY(elapsed);
    PERF_TRY(backend_.health());
    const double operations = static_cast<double>(replays) * graph_calls_ * options_.aggregate;
    series_.graph.push_back(elapsed.value().seconds / operations);
    if (!context_.eager()) series_.host.push_back(elapsed.value().host_seconds / operations);
  }
  return {};
}

// In as many stretches as the device needs.
Result<Elapsed> Trial::time_eager() {
  const int most = batch();
  Elapsed whole;
  for (int done = 0; done < options_.iterations;) {
    PERF_TRY(context_.team.barrier());
    const int now = std::min(options_.iterations - done, most);
    done += now;
    const Result<Elapsed> part = device_.time([&] { return align(); }, [&] { return repeat(now); });
    PERF_TRY(part);
    whole.seconds += part.value().seconds;
    whole.host_seconds += part.value().host_seconds;
  }
  PERF_TRY(backend_.health());
  return whole;
}

Result<Elapsed> Trial::time_waiting() {
  const bool outside = options_.blocking == Blocking::kOutsideTime;
  Elapsed elapsed;
  PERF_TRY(context_.team.barrier());
  PERF_TRY(align());
  PERF_TRY(settle());
  std::int64_t start = steady_ns();
  for (int i = 0; i < options_.iterations; ++i) {
    if (outside) {
      PERF_TRY(align());
      PERF_TRY(settle());
      start = steady_ns();
    }
    PERF_TRY(iterate());
    if (outside) {
      elapsed.host_seconds += seconds_since(start);
      PERF_TRY(settle());
      elapsed.seconds += seconds_since(start);
    } else {
      PERF_TRY(wait_as_asked());
    }
  }
  if (outside) return elapsed;
  elapsed.host_seconds = seconds_since(start);
  PERF_TRY(settle());
  elapsed.seconds = seconds_since(start);
  return elapsed;
}

Result<std::vector<Iteration>> Trial::sample() {
  Device::Step wait;
  if (options_.blocking != Blocking::kNone) wait = [&] { return wait_as_asked(); };
  PERF_TRY(context_.team.barrier());
  Result<std::vector<Iteration>> series = device_.sample(
      options_.iterations, batch(), [&] { return align(); }, [&] { return iterate_timed(); }, wait);
  PERF_TRY(series);
  PERF_TRY(backend_.health());
  return series;
}

// Making a graph and launching it are apart, as allocating and working are.
Outcome Trial::capture() {
  PERF_TRY(context_.team.barrier());
  Result<std::unique_ptr<Graph>> graph = device_.capture([&] { return repeat(graph_calls_); });
  PERF_TRY(graph);
  graph_ = std::move(graph.value());
  PERF_TRY(context_.team.barrier());
  PERF_TRY(graph_->launch());
  return settle();
}

Outcome Trial::end() {
  PERF_TRY(settle());
  PERF_TRY(context_.team.barrier());  // nobody's work is in flight: graphs may go
  graph_.reset();
  return collective_.reduces ? backend_.drop_op(subject_.op, op_) : Outcome{};
}

// A multiple of the alignment that a lone buffer has.
std::size_t Trial::slot_bytes() const {
  constexpr std::size_t kAlignment = 4096;
  const std::size_t shift = static_cast<std::size_t>(options_.unalign) * describe(subject_.type).bytes;
  return std::max((subject_.bytes() + shift + kAlignment - 1) / kAlignment, std::size_t{1}) * kAlignment;
}

Call Trial::make_call(std::size_t slot) const {
  Call call;
  call.element = describe(subject_.type).bytes;
  call.count = subject_.shape.count;
  call.type = subject_.type;
  call.op = op_;
  call.seat = {context_.team.rank(), context_.team.nranks(), subject_.root};
  call.comm = backend_.comm();
  call.stream = device_.stream();
  const std::size_t shift = slot * slot_bytes() + static_cast<std::size_t>(options_.unalign) * call.element;
  call.send = send_.data() + shift;
  call.recv = recv_.data() + shift;
  if (in_place_) {
    const InPlace place = collective_.place(call.count, call.seat);
    call.send = recv_.data() + shift + place.send_at * call.element;
    call.recv = recv_.data() + shift + place.recv_at * call.element;
  }
  if (collective_.id == CollectiveId::kAllToAllV) set_pair_counts(call);
  return call;
}

Outcome Trial::prepare_input(const Call& call, std::uint64_t seed) {
  if (subject_.shape.send == 0) return {};
  const PatternTable input = PatternTable::of_input(subject_.pattern(context_.team.nranks(), seed),
                                                    context_.team.rank(), subject_.shape.send);
  auto* to = static_cast<std::byte*>(const_cast<void*>(call.send));
  return device_.write(to, subject_.shape.send * call.element,
                       [&](std::byte* out, std::size_t at, std::size_t bytes) {
                         input.fill(out, at / call.element, bytes / call.element);
                       });
}

// One iteration: one call, or as many as -m says.
Outcome Trial::iterate(std::string* unsupported) {
  const Range range(label_.c_str());
  std::string why_not;
  const Call& call = calls_[turn_++ % calls_.size()];
  PERF_TRY(backend_.run(collective_, call, options_.aggregate, &why_not));
  if (why_not.empty()) return {};
  if (unsupported == nullptr) return Error{std::string(collective_.name) + ": " + why_not};
  *unsupported = std::move(why_not);
  return {};
}

Outcome Trial::repeat(int times) {
  turn_ = 0;
  for (int i = 0; i < times; ++i) PERF_TRY(iterate_timed());
  return {};
}

Outcome Trial::iterate_timed() {
  PERF_TRY(iterate());
  if (subject_.bytes() > kOutlastsLaunches) device_.run_ahead();
  return {};
}

// Iterations that may be enqueued in one go.
int Trial::batch() const {
  const int operations = operations_in_one_go(device_.most_operations(), subject_.bytes());
  return std::max(1, operations / options_.aggregate);
}

Outcome Trial::align() {
  if (context_.cold()) PERF_TRY(device_.chill());
  return backend_.align();
}

// The stream's fault is said by the stream where it can say it, else by the library.
Outcome Trial::settle() {
  PERF_TRY(device_.synchronize());
  return backend_.health();
}

Outcome Trial::wait_as_asked() {
  if (options_.blocking == Blocking::kNone) return {};
  PERF_TRY(settle());
  if (options_.blocking != Blocking::kWaitAndBarrier) return {};
  PERF_TRY(align());
  return settle();
}

}  // namespace pkcomm::perf
