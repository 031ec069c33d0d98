// One library doing one half of a row on one rank: its calls, its input, its times, its data. Several
// trials take turns, so that what disturbs the machine disturbs them alike. All ranks run the same code in
// step.
#pragma once

#include <memory>
#include <vector>

#include "backend.hpp"
#include "buffers.hpp"
#include "subject.hpp"

namespace pkcomm::perf {

/// What cold measurements walk through: more than a second-level cache holds.
inline constexpr std::size_t kColdBytes = std::size_t{256} << 20;

/// Seconds of one operation on this rank, an entry each repetition; empty where not measured so.
struct Series {
  std::vector<double> eager, host, graph;
};

/// What the data check found on this rank.
struct Damage {
  std::uint64_t wrong = 0;              // elements and bytes
  std::uint64_t guard_bytes_wrong = 0;  // of these, written outside of the output
};

class Trial {
 public:
  /// All outlive the trial.
  Trial(const Context& context, const Subject& subject, bool in_place, Backend& backend, const Buffer& send,
        const Buffer& recv)
      : context_(context),
        options_(context.options),
        device_(context.device),
        subject_(subject),
        collective_(*subject.collective),
        in_place_(in_place),
        backend_(backend),
        send_(send),
        recv_(recv) {}

  /// Writes the input, warms up and captures. `*unsupported`: why the library cannot, on all ranks alike.
  Outcome begin(std::uint64_t seed, std::string* unsupported);
  /// One repetition in each way that was asked for.
  Outcome time();
  /// Times single iterations.
  Result<std::vector<Iteration>> sample();
  /// Runs once with poisoned outputs and compares everything within reach.
  Outcome check(std::uint64_t seed, int round);
  /// Waits for the stream and gives up what begin() made.
  Outcome end();

  Backend& backend() const { return backend_; }
  const Series& series() const { return series_; }
  const Damage& damage() const { return damage_; }

 private:
  Call make_call(std::size_t slot) const;
  std::size_t slot_bytes() const;
  Outcome prepare_input(const Call& call, std::uint64_t seed);
  int batch() const;
  Outcome iterate(std::string* unsupported = nullptr);
  Outcome iterate_timed();
  Outcome repeat(int times);
  Outcome align();
  Outcome settle();
  Outcome wait_as_asked();

  Result<Elapsed> time_eager();
  Result<Elapsed> time_waiting();
  Outcome capture();

  Outcome inject(const Call& call) const;
  Outcome compare(const Call& call, std::uint64_t seed);
  Outcome compare_segments(const std::byte* base, std::size_t element, const std::vector<Segment>& segments,
                           const PatternSpec& spec);
  Outcome compare_guards(const std::byte* data, std::size_t bytes);
  Outcome count_damage(const Result<std::size_t>& bytes);
  Outcome check_barrier(const Call& call, int round);

  const Context& context_;
  const Options& options_;
  Device& device_;
  const Subject& subject_;
  const Collective& collective_;
  bool in_place_;
  Backend& backend_;
  const Buffer& send_;
  const Buffer& recv_;

  pkcommRedOp_t op_ = pkcommSum;
  std::vector<Call> calls_;  // taken in turn: one, or as many as it takes to find no data in the caches
  std::size_t turn_ = 0;
  int graph_calls_ = 0;
  std::unique_ptr<Graph> graph_;
  std::string label_;  // for profilers
  Series series_;
  Damage damage_;
};

}  // namespace pkcomm::perf
