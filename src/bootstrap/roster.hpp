// Who has joined a rendezvous, and how it ends: with a table once all ranks are there, or with a failure that all are
// told. State and rules alone: no socket, no thread, no lock. The caller says when a deadline has passed.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "bootstrap/deadline.hpp"
#include "bootstrap/wire.hpp"

namespace pkcomm::bootstrap {

class Roster {
 public:
  /// Takes in one rank. May end the rendezvous. After the end it changes nothing but `all_came`.
  void add(const Hello& hello);
  /// A rank of another version of pkcomm came: ends the rendezvous.
  void add_other_version(std::uint32_t version);
  /// A rank that had joined is gone before the end: ends the rendezvous.
  void lost(int rank);
  /// Ends the rendezvous if the deadline of a rank that joined has passed.
  void expire();

  /// Nobody came in time, and nobody will be let in: ends the rendezvous if it has not ended.
  void close();

  bool ended() const { return outcome_.has_value(); }
  /// Only after the end.
  const Outcome& outcome() const { return *outcome_; }
  /// Ended well: the id has made its communicator.
  bool served() const { return ended() && outcome_->table.has_value(); }
  bool anybody_came() const { return !hellos_.empty(); }
  /// Whether every rank has been here, after a failure too: then nobody is left to be told.
  bool all_came() const { return !hellos_.empty() && hellos_.size() >= static_cast<std::size_t>(nranks_); }
  /// Of those who joined, the one that passes first.
  Deadline deadline() const { return deadline_; }

 private:
  void fail(pkcommResult_t code, std::string text) { outcome_.emplace().failure = {code, std::move(text)}; }
  Table table() const;
  std::vector<int> missing() const;

  int nranks_ = 0;
  std::map<int, Hello> hellos_;  // by rank
  Deadline deadline_ = Deadline::never();
  std::optional<Outcome> outcome_;
};

}  // namespace pkcomm::bootstrap
