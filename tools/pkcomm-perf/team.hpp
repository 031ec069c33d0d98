// How the tool's ranks talk among themselves, apart from the library under test: a star of stream sockets
// with rank 0 in the middle. It hands out the unique id, gathers times and faults, and keeps the ranks
// together between measurements. Nothing here is on a timed path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "result.hpp"

namespace pkcomm::perf {

/// Where the ranks meet: a name in the abstract Unix namespace, or host:port.
struct MeetingPoint {
  std::string host;  // empty: `name` is an abstract name
  std::string port;
  std::string name;
};

/// "host:port"; the host may be a name, an IPv4 address, or an IPv6 address in brackets.
Result<MeetingPoint> parse_meeting_point(const std::string& text);

/// The abstract name that all processes of `job` of this user derive.
MeetingPoint meeting_point_of(const std::string& job);

/// One rank's end. Every function is called by all ranks in the same order. Move-only; closes its sockets.
class Team {
 public:
  /// Waits for all ranks, `timeout_s` at most.
  static Result<Team> join(const MeetingPoint& where, int rank, int nranks, int timeout_s);
  Team(Team&& other) noexcept;
  Team& operator=(Team&&) = delete;
  ~Team();

  int rank() const { return rank_; }
  int nranks() const { return nranks_; }

  /// Rank 0 receives everybody's `bytes` bytes in rank order into `all`; elsewhere `all` is left alone.
  Outcome gather(const void* mine, std::size_t bytes, void* all);
  /// Everybody receives rank 0's bytes.
  Outcome broadcast(void* data, std::size_t bytes);
  /// Nobody leaves before all have come.
  Outcome barrier();

  /// gather() of one T a rank; empty but on rank 0.
  template <class T>
  Result<std::vector<T>> collect(const T& mine) {
    std::vector<T> all(rank_ == 0 ? static_cast<std::size_t>(nranks_) : 0);
    PERF_TRY(gather(&mine, sizeof(T), all.data()));
    return all;
  }

 private:
  Team(int rank, int nranks) : rank_(rank), nranks_(nranks) {}
  std::string who(std::size_t socket) const;

  int rank_;
  int nranks_;
  std::vector<int> sockets_;  // rank 0: of ranks 1, 2, ...; elsewhere: the one to rank 0
};

}  // namespace pkcomm::perf
