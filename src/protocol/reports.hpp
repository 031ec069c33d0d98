// Words for what goes wrong between ranks, the same on every platform: who called something else, who was waited for, who
// gave up. They are made from the calls that ranks keep beside their words, read only then.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "protocol/layout.hpp"

namespace pkcomm {

/// A rank's ring of calls, as it was when it was read.
using CallRecords = std::array<CallRecord, kCalls>;

class Reports {
 public:
  /// `describe` gives a call in words: "all_reduce float 1000 sum". `pids`: of every rank.
  using Describe = std::string (*)(const CallRecord&);
  Reports(int rank, std::span<const std::int64_t> pids, Describe describe)
      : rank_(rank), pids_(pids), describe_(describe) {}

  /// "rank 2 (pid 4711)"
  std::string rank_name(int rank) const;
  /// Of operation `last` the two ranks have different words; what tells them apart may be an earlier call.
  std::string mismatch(int peer, const CallRecords& theirs, const CallRecords& own, std::uint64_t last) const;

  struct Awaited {
    int rank;
    std::uint64_t entered;  // last operation that it is known to have entered
  };
  /// `call`: what this rank was doing.
  std::string timeout(const CallRecord& call, std::span<const Awaited> peers, const char* phase,
                      std::int64_t waited_ms) const;
  std::string left(int peer) const;
  /// `why`: the peer's own words; empty where it could say nothing more.
  std::string gave_up(int peer, const std::string& why) const;
  std::string aborted() const;

 private:
  const int rank_;
  const std::span<const std::int64_t> pids_;
  const Describe describe_;
};

}  // namespace pkcomm
