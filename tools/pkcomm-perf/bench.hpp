// Measures one row on one rank: times the operation out of place and in place, and checks what it did. All
// ranks run the same code in step; rank 0 gets the row.
#pragma once

#include <optional>

#include "buffers.hpp"
#include "collectives.hpp"
#include "options.hpp"
#include "pattern.hpp"
#include "rank_status.hpp"
#include "row.hpp"
#include "session.hpp"
#include "team.hpp"

namespace pkcomm::perf {

/// What a row is about.
struct Subject {
  const Collective* collective = nullptr;
  pkcommDataType_t type = pkcommFloat32;
  Op op = Op::kSum;
  int root = 0;
  Shape shape;
  std::string forced;  // algorithm under --algorithm each, or empty

  std::size_t bytes() const { return shape.sized * describe(type).bytes; }
};

class Bench {
 public:
  /// All arguments outlive the bench. Collective: allocates buffers for the greatest size.
  static Result<Bench> make(const Options& options, const Collective& collective, Team& team,
                            const Session& session, RankStatus& status);

  /// The row; on ranks other than 0 without figures. Empty where there is no row to show: the forced
  /// algorithm is not legal for it, or the library does not support it (`*unsupported` then holds its words).
  Result<std::optional<Row>> measure(const Subject& subject, std::string* unsupported);

 private:
  // One half of a row as each rank sees it; travels to rank 0 as it is.
  struct Report {
    double seconds = 0;       // of one operation
    double host_seconds = 0;  // of enqueueing it
    std::uint64_t wrong = 0;
    std::uint64_t guard_bytes_wrong = 0;
  };

  Bench(const Options& options, const Collective& collective, Team& team, const Session& session,
        RankStatus& status, Buffer send, Buffer recv)
      : options_(options),
        collective_(collective),
        team_(team),
        session_(session),
        status_(status),
        send_(std::move(send)),
        recv_(std::move(recv)) {}

  Result<bool> explain(const Subject& subject, Row& row) const;
  Result<std::optional<Half>> measure_half(const Subject& subject, bool in_place, std::string* unsupported);
  Call make_call(const Subject& subject, bool in_place, pkcommRedOp_t op) const;
  void prepare_input(const Call& call, const Subject& subject, std::uint64_t seed) const;

  pkcommResult_t iterate(const Call& call) const;
  Outcome wait_as_asked() const;
  Outcome time_iterations(const Call& call, Report& report) const;
  Outcome time_single_iterations(const Call& call, std::vector<std::int64_t>& stamps) const;

  Outcome check_data(const Call& call, const Subject& subject, bool in_place, Report& report);
  void compare(const Call& call, const Subject& subject, bool in_place, std::uint64_t seed,
               Report& report) const;
  Outcome check_barrier(const Call& call, int round, Report& report) const;
  void inject(const Call& call, const Subject& subject, bool in_place) const;

  Result<std::optional<Half>> combine(const Subject& subject, const Report& mine,
                                      const std::vector<std::int64_t>& stamps);
  Result<Samples> combine_samples(const std::vector<std::int64_t>& stamps);
  PatternSpec pattern(const Subject& subject, std::uint64_t seed) const;

  const Options& options_;
  const Collective& collective_;
  Team& team_;
  const Session& session_;
  RankStatus& status_;
  Buffer send_;
  Buffer recv_;
  std::uint64_t seed_ = 0;  // counts fillings, alike on all ranks
};

}  // namespace pkcomm::perf
