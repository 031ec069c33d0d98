// The data check of one half of a row. Outputs are poisoned, the operation runs once, and everything within
// reach is compared: outputs with exact expectations, inputs with what they were, the rest and the guards
// with poison.
#include <algorithm>
#include <chrono>
#include <thread>

#include "clock.hpp"
#include "segments.hpp"
#include "trial.hpp"

namespace pkcomm::perf {

Outcome Trial::check(std::uint64_t seed, int round) {
  const Call& call = calls_.front();
  if (collective_.id == CollectiveId::kBarrier) return check_barrier(call, round);
  const std::size_t shift = static_cast<std::size_t>(options_.unalign) * call.element;
  const std::size_t extent = std::max(subject_.shape.recv, in_place_ ? subject_.shape.send : 0);
  if (!in_place_) PERF_TRY(poison(device_, send_.data() + shift, subject_.shape.send * call.element));
  PERF_TRY(poison(device_, recv_.data() + shift, extent * call.element));
  PERF_TRY(prepare_input(call, seed));
  // A peer may put as soon as it likes: not before the poison is laid, nor before the outcome has been
  // looked at. The other operations wait for this rank's call.
  const bool one_sided = collective_.id == CollectiveId::kPut;
  if (one_sided) PERF_TRY(context_.team.barrier());
  std::string unsupported;
  PERF_TRY(backend_.run(collective_, call, 1, &unsupported));
  PERF_TRY(settle());
  PERF_TRY(inject(call));
  PERF_TRY(compare(call, seed));
  return one_sided ? context_.team.barrier() : Outcome{};
}

Outcome Trial::inject(const Call& call) const {
  if (!options_.injection || subject_.shape.recv == 0) return {};
  const Injection& wish = *options_.injection;
  if (wish.rank != context_.team.rank() || !(in_place_ ? wish.in_place : wish.out_of_place)) return {};
  if (wish.bytes && *wish.bytes != subject_.bytes()) return {};
  const std::size_t element =
      std::min(wish.element.value_or(subject_.shape.recv - 1), subject_.shape.recv - 1);
  std::byte* const victim = static_cast<std::byte*>(call.recv) + element * call.element;
  std::byte value{};
  PERF_TRY(device_.read(victim, 1, [&](const std::byte* data, std::size_t, std::size_t) { value = *data; }));
  return device_.write(victim, 1,
                       [&](std::byte* out, std::size_t, std::size_t) { *out = value ^ std::byte{1}; });
}

Outcome Trial::compare(const Call& call, std::uint64_t seed) {
  const PatternSpec spec = subject_.pattern(context_.team.nranks(), seed);
  const std::size_t shift = static_cast<std::size_t>(options_.unalign) * call.element;
  const InPlace place = in_place_ ? collective_.place(call.count, call.seat) : InPlace{};
  const std::size_t extent = std::max(subject_.shape.recv, in_place_ ? subject_.shape.send : 0);
  const Segment input{Segment::kInput, place.send_at, subject_.shape.send, context_.team.rank(), 0};

  std::vector<Segment> image = {{Segment::kPoison, 0, extent, 0, 0}};
  if (in_place_) overlay(image, input);
  std::vector<Segment> outputs;
  collective_.outputs(call.count, call.seat, outputs);
  for (Segment& output : outputs) {
    output.at += place.recv_at;
    overlay(image, output);
  }

  const std::byte* recv = recv_.data() + shift;
  PERF_TRY(compare_segments(recv, call.element, image, spec));
  PERF_TRY(compare_guards(recv, extent * call.element));
  if (in_place_) return {};
  const std::byte* send = send_.data() + shift;
  PERF_TRY(compare_segments(send, call.element, {input}, spec));
  return compare_guards(send, subject_.shape.send * call.element);
}

Outcome Trial::compare_segments(const std::byte* base, std::size_t element,
                                const std::vector<Segment>& segments, const PatternSpec& spec) {
  for (const Segment& segment : segments) {
    if (segment.count == 0) continue;
    const std::byte* data = base + segment.at * element;
    if (segment.kind == Segment::kPoison) {
      PERF_TRY(count_damage(perf::damage(device_, data, segment.count * element)));
      continue;
    }
    const std::size_t last = segment.first + segment.count;
    const PatternTable table = segment.kind == Segment::kInput
                                   ? PatternTable::of_input(spec, segment.rank, last)
                                   : PatternTable::of_result(spec, last);
    PERF_TRY(device_.read(
        data, segment.count * element, [&](const std::byte* part, std::size_t at, std::size_t bytes) {
          damage_.wrong += table.differences(part, segment.first + at / element, bytes / element);
        }));
  }
  return {};
}

Outcome Trial::compare_guards(const std::byte* data, std::size_t bytes) {
  return count_damage(guard_damage(device_, data, bytes));
}

Outcome Trial::count_damage(const Result<std::size_t>& bytes) {
  PERF_TRY(bytes);
  damage_.wrong += bytes.value();
  damage_.guard_bytes_wrong += bytes.value();
  return {};
}

// One rank comes late, in each round another; who left before it came is wrong. Rank 0 counts for all.
Outcome Trial::check_barrier(const Call& call, int round) {
  struct Visit {
    std::int64_t entered_ns = 0;
    std::int64_t left_ns = 0;
  };
  Team& team = context_.team;
  Visit mine;
  PERF_TRY(team.barrier());
  if (round % team.nranks() == team.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  mine.entered_ns = steady_ns();
  std::string unsupported;
  PERF_TRY(backend_.run(collective_, call, 1, &unsupported));
  PERF_TRY(settle());
  mine.left_ns = steady_ns();

  const Result<std::vector<Visit>> visits = team.collect(mine);
  PERF_TRY(visits);
  std::int64_t last_entered_ns = 0;
  for (const Visit& visit : visits.value()) last_entered_ns = std::max(last_entered_ns, visit.entered_ns);
  for (const Visit& visit : visits.value()) damage_.wrong += visit.left_ns < last_entered_ns ? 1 : 0;
  return {};
}

}  // namespace pkcomm::perf
