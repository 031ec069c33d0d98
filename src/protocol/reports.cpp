// The texts. Programs do not parse them, but people search for them: docs/troubleshooting.md lists them by symptom.
#include "protocol/reports.hpp"

namespace pkcomm {
namespace {

/// The record of operation m; one without a word where it is not known any more.
CallRecord call_of(const CallRecords& calls, std::uint64_t m) {
  const CallRecord& record = calls[m % kCalls];
  return operation_of(record.word) == m ? record : CallRecord{};
}

}  // namespace

std::string Reports::rank_name(int rank) const {
  return "rank " + std::to_string(rank) + " (pid " + std::to_string(pids_[static_cast<std::size_t>(rank)]) +
         ")";
}

std::string Reports::mismatch(int peer, const CallRecords& theirs, const CallRecords& own,
                              std::uint64_t last) const {
  std::uint64_t first = last;
  for (std::uint64_t m = last; m > 0 && m + kCalls > last; --m) {
    const CallRecord one = call_of(theirs, m), other = call_of(own, m);
    if (one.word != 0 && other.word != 0 && one.fingerprint != other.fingerprint) first = m;
  }
  const CallRecord one = call_of(theirs, first), other = call_of(own, first);
  const std::string called = one.word != 0 ? describe_(one) : "something else";
  const std::string here = other.word != 0 ? describe_(other) : "another call";
  std::string text =
      rank_name(peer) + " called " + called + ", this rank (" + std::to_string(rank_) + ") " + here;
  if (one.fingerprint == other.fingerprint) {
    text += ", but another of their calls before was not the same";
  } else if (called == here) {
    text += " with other symmetric memory";  // all else that a fingerprint has in it is in the words
  }
  return text + ", operation " + std::to_string(first);
}

std::string Reports::timeout(const CallRecord& call, std::span<const Awaited> peers, const char* phase,
                             std::int64_t waited_ms) const {
  const std::uint64_t operation = operation_of(call.word);
  std::string text = describe_(call);
  if (operation != 0) text += ", operation " + std::to_string(operation);
  text +=
      ": rank " + std::to_string(rank_) + " waited " + std::to_string(waited_ms) + " ms (" + phase + ") for";
  const char* separator = " ";
  for (const Awaited& peer : peers) {
    text += separator + rank_name(peer.rank);
    separator = ", ";
    if (operation != 0) text += ", which has entered operation " + std::to_string(peer.entered);
  }
  return text;
}

std::string Reports::left(int peer) const { return rank_name(peer) + " has left the communicator"; }

std::string Reports::gave_up(int peer, const std::string& why) const {
  return why.empty() ? rank_name(peer) + " died: its connection closed"
                     : rank_name(peer) + " gave up: " + why;
}

std::string Reports::aborted() const {
  return "the communicator was aborted by rank " + std::to_string(rank_);
}

}  // namespace pkcomm
