// Rank 0 gathers every repetition of every rank before it reduces anything, since the median of maxima is
// not the maximum of medians.
#include "combine.hpp"

#include <algorithm>
#include <numeric>

#include "bandwidth.hpp"

namespace pkcomm::perf {

namespace {

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

// Everybody's entries, in the order of the ranks; empty but on rank 0.
template <class T>
Result<std::vector<T>> gathered(Team& team, const std::vector<T>& mine) {
  const std::size_t ranks = team.rank() == 0 ? static_cast<std::size_t>(team.nranks()) : 0;
  std::vector<T> all(ranks * mine.size());
  PERF_TRY(team.gather(mine.data(), mine.size() * sizeof(T), all.data()));
  return all;
}

Result<double> gathered_time(const Context& context, const std::vector<double>& mine) {
  const Result<std::vector<double>> all = gathered(context.team, mine);
  PERF_TRY(all);
  return all.value().empty() ? 0 : one_time(all.value(), mine.size(), context.across());
}

// Bandwidth is of the time that the work took, whatever the time column shows.
Figures figures(const Context& context, const Subject& subject, double seconds, double shown_seconds) {
  const Bandwidth rate =
      bandwidth(subject.collective->id, context.team.nranks(), subject.bytes(), seconds * 1e6);
  return {shown_seconds * 1e6, rate.algbw, rate.busbw};
}

struct Account {
  Figures figures;
  std::optional<Figures> graph;
  Damage damage;
};

// Collective: what all ranks measured in one trial.
Result<Account> settle(const Context& context, const Subject& subject, const Trial& trial) {
  const Series& series = trial.series();
  const Result<double> host = gathered_time(context, series.host);
  PERF_TRY(host);
  Account account;
  for (const auto* times : {&series.eager, &series.graph}) {
    if (times->empty()) continue;
    const Result<double> time = gathered_time(context, *times);
    PERF_TRY(time);
    const bool first = times == &series.eager || series.eager.empty();
    const bool host_time = context.options.host_time && first;
    const Figures made = figures(context, subject, time.value(), host_time ? host.value() : time.value());
    if (first) {
      account.figures = made;
    } else {
      account.graph = made;
    }
  }
  const Result<std::vector<Damage>> damages = context.team.collect(trial.damage());
  PERF_TRY(damages);
  for (const Damage& damage : damages.value()) {
    account.damage.wrong += damage.wrong;
    account.damage.guard_bytes_wrong += damage.guard_bytes_wrong;
  }
  return account;
}

Samples combine_samples(const Options& options, const std::vector<Iteration>& all, std::size_t each) {
  Samples samples;
  std::vector<double> skews;
  for (std::size_t i = 0; i < each; ++i) {
    Iteration longest = all[i];
    Iteration first = all[i];
    Iteration last = all[i];
    for (std::size_t at = i; at < all.size(); at += each) {
      if (all[at].duration_ns > longest.duration_ns) longest = all[at];
      if (all[at].end_ns < first.end_ns) first = all[at];
      if (all[at].end_ns > last.end_ns) last = all[at];
    }
    samples.times_us.push_back(static_cast<double>(longest.duration_ns) * 1e-3 / options.aggregate);
    skews.push_back(static_cast<double>(last.end_ns - first.end_ns) * 1e-3);
  }
  samples.skipped = static_cast<std::size_t>(options.skip_samples);
  samples.summary = summarize({samples.times_us.begin() + options.skip_samples, samples.times_us.end()});
  samples.skew_us = summarize(skews).p50;
  return samples;
}

}  // namespace

double one_time(const std::vector<double>& times, std::size_t repetitions, Across how) {
  std::vector<double> of_repetitions;
  for (std::size_t i = 0; i < repetitions; ++i) {
    std::vector<double> of_ranks;
    for (std::size_t at = i; at < times.size(); at += repetitions) of_ranks.push_back(times[at]);
    of_repetitions.push_back(across_ranks(of_ranks, how));
  }
  return summarize(of_repetitions).p50;
}

Result<Half> combine(const Context& context, const Subject& subject,
                     const std::vector<std::unique_ptr<Trial>>& trials,
                     const std::vector<Iteration>& samples) {
  const auto checked = [&](const Trial& trial) {
    return context.options.checks > 0 &&
           trial.backend().is_exact(*subject.collective, subject.type, subject.op);
  };
  Half half;
  const Result<Account> first = settle(context, subject, *trials.front());
  PERF_TRY(first);
  static_cast<Figures&>(half) = first.value().figures;
  half.graph = first.value().graph;
  half.guard_bytes_wrong = first.value().damage.guard_bytes_wrong;
  if (checked(*trials.front())) half.wrong = first.value().damage.wrong;
  if (trials.size() > 1) {
    const Result<Account> second = settle(context, subject, *trials[1]);
    PERF_TRY(second);
    half.nccl = Rival{second.value().figures, second.value().graph, {}};
    if (checked(*trials[1])) half.nccl->wrong = second.value().damage.wrong;
  }
  if (samples.empty()) return half;
  const Result<std::vector<Iteration>> all = gathered(context.team, samples);
  PERF_TRY(all);
  if (!all.value().empty()) {
    half.samples = combine_samples(context.options, all.value(), samples.size());
  } else {
    half.samples.emplace();
  }
  return half;
}

}  // namespace pkcomm::perf
