// The data check of one half of a row. Outputs are poisoned, the operation runs once, and everything within
// reach is compared: outputs with exact expectations, inputs with what they were, the rest and the guards
// with poison.
#include <algorithm>
#include <chrono>
#include <thread>

#include "bench.hpp"
#include "clock.hpp"

namespace pkcomm::perf {

Outcome Bench::check_data(const Call& call, const Subject& subject, bool in_place, Report& report) {
  for (int round = 0; round < options_.checks; ++round) {
    if (collective_.id == CollectiveId::kBarrier) {
      PERF_TRY(check_barrier(call, round, report));
      continue;
    }
    const std::size_t shift = static_cast<std::size_t>(options_.unalign) * call.element;
    const std::size_t extent = std::max(subject.shape.recv, in_place ? subject.shape.send : 0);
    ++seed_;
    if (!in_place) poison(send_.data() + shift, subject.shape.send * call.element);
    poison(recv_.data() + shift, extent * call.element);
    prepare_input(call, subject, seed_);
    // A peer may put as soon as it likes: not before the poison is laid, nor before the outcome has been
    // looked at. The other operations wait for this rank's call.
    const bool one_sided = collective_.id == CollectiveId::kPut;
    if (one_sided) PERF_TRY(team_.barrier());
    PERF_TRY(check(collective_.run(call), collective_.name.data(), session_.comm()));
    PERF_TRY(session_.synchronize());
    inject(call, subject, in_place);
    compare(call, subject, in_place, seed_, report);
    if (one_sided) PERF_TRY(team_.barrier());
  }
  return {};
}

void Bench::inject(const Call& call, const Subject& subject, bool in_place) const {
  if (!options_.injection || subject.shape.recv == 0) return;
  const Injection& wish = *options_.injection;
  if (wish.rank != team_.rank() || !(in_place ? wish.in_place : wish.out_of_place)) return;
  if (wish.bytes && *wish.bytes != subject.bytes()) return;
  const std::size_t element = std::min(wish.element.value_or(subject.shape.recv - 1), subject.shape.recv - 1);
  static_cast<std::byte*>(call.recv)[element * call.element] ^= std::byte{1};
}

void Bench::compare(const Call& call, const Subject& subject, bool in_place, std::uint64_t seed,
                    Report& report) const {
  const PatternSpec spec = pattern(subject, seed);
  const std::size_t shift = static_cast<std::size_t>(options_.unalign) * call.element;
  const InPlace place = in_place ? collective_.place(call.count, call.seat) : InPlace{};
  const std::size_t extent = std::max(subject.shape.recv, in_place ? subject.shape.send : 0);
  const Segment input{Segment::kInput, place.send_at, subject.shape.send, team_.rank(), 0};

  std::vector<Segment> image = {{Segment::kPoison, 0, extent, 0, 0}};
  if (in_place) overlay(image, input);
  std::vector<Segment> outputs;
  collective_.outputs(call.count, call.seat, outputs);
  for (Segment& output : outputs) {
    output.at += place.recv_at;
    overlay(image, output);
  }

  const auto compare_segments = [&](const std::byte* base, const std::vector<Segment>& segments) {
    for (const Segment& segment : segments) {
      if (segment.count == 0) continue;
      const std::byte* data = base + segment.at * call.element;
      if (segment.kind == Segment::kPoison) {
        report.guard_bytes_wrong += damage(data, segment.count * call.element);
        continue;
      }
      const std::size_t last = segment.first + segment.count;
      const PatternTable table = segment.kind == Segment::kInput
                                     ? PatternTable::of_input(spec, segment.rank, last)
                                     : PatternTable::of_result(spec, last);
      report.wrong += table.differences(data, segment.first, segment.count);
    }
  };
  const std::uint64_t guards_before = report.guard_bytes_wrong;
  const std::byte* recv = recv_.data() + shift;
  compare_segments(recv, image);
  report.guard_bytes_wrong += guard_damage(recv, extent * call.element);
  if (!in_place) {
    const std::byte* send = send_.data() + shift;
    compare_segments(send, {input});
    report.guard_bytes_wrong += guard_damage(send, subject.shape.send * call.element);
  }
  report.wrong += report.guard_bytes_wrong - guards_before;
}

// One rank comes late, in each round another; who left before it came is wrong. Rank 0 counts for all.
Outcome Bench::check_barrier(const Call& call, int round, Report& report) const {
  struct Visit {
    std::int64_t entered_ns = 0;
    std::int64_t left_ns = 0;
  };
  Visit mine;
  PERF_TRY(team_.barrier());
  if (round % team_.nranks() == team_.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  mine.entered_ns = steady_ns();
  PERF_TRY(check(collective_.run(call), collective_.name.data(), session_.comm()));
  PERF_TRY(session_.synchronize());
  mine.left_ns = steady_ns();

  const Result<std::vector<Visit>> visits = team_.collect(mine);
  PERF_TRY(visits);
  std::int64_t last_entered_ns = 0;
  for (const Visit& visit : visits.value()) last_entered_ns = std::max(last_entered_ns, visit.entered_ns);
  for (const Visit& visit : visits.value()) report.wrong += visit.left_ns < last_entered_ns ? 1 : 0;
  return {};
}

}  // namespace pkcomm::perf
