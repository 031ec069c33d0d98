// Each way in which a rendezvous can end, and the words for it. The words name ranks, pids and values, since whoever
// reads them sees one of the processes only.
#include "bootstrap/roster.hpp"

#include <algorithm>
#include <string>

namespace pkcomm::bootstrap {
namespace {

std::string who(const Hello& hello) {
  return "rank " + std::to_string(hello.rank) + " (pid " + std::to_string(hello.pid) + ")";
}

}  // namespace

void Roster::add(const Hello& hello) {
  const auto [place, is_new] = hellos_.emplace(hello.rank, hello);
  nranks_ = std::max(nranks_, hello.nranks);
  if (ended()) return;
  if (!is_new) {
    const Hello& first = place->second;
    return fail(pkcommInvalidUsage,
                "start-up: rank " + std::to_string(hello.rank) + " joined twice: as pid " +
                    std::to_string(first.pid) + " (nranks " + std::to_string(first.nranks) + ") and as pid " +
                    std::to_string(hello.pid) + " (nranks " + std::to_string(hello.nranks) + ")");
  }
  for (const auto& [rank, other] : hellos_) {
    if (other.nranks == hello.nranks) continue;
    return fail(pkcommInvalidUsage, "start-up: " + who(other) + " has nranks " +
                                        std::to_string(other.nranks) + ", " + who(hello) + " has nranks " +
                                        std::to_string(hello.nranks));
  }
  for (const auto& [rank, other] : hellos_) {
    const auto one = other.agreement_span();
    const auto two = hello.agreement_span();
    if (std::equal(one.begin(), one.end(), two.begin(), two.end())) continue;
    outcome_.emplace().disagreement = {{rank, hello.rank},
                                       {{one.begin(), one.end()}, {two.begin(), two.end()}}};
    return;
  }
  const Deadline deadline = Deadline::of_limit(hello.limit_ms, hello.remaining_ms);
  if (deadline.time() < deadline_.time()) deadline_ = deadline;
  if (all_came()) outcome_.emplace().table = table();
}

void Roster::add_other_version(std::uint32_t version) {
  if (ended()) return;
  fail(pkcommInvalidUsage, "start-up: ranks run different versions of pkcomm: start-up protocol " +
                               std::to_string(kProtocolVersion) + " where the id was made, " +
                               std::to_string(version) + " at another rank");
}

void Roster::lost(int rank) {
  if (ended()) return;
  fail(pkcommRemoteError,
       "start-up: " + who(hellos_.at(rank)) + " died or gave up before all ranks had joined");
}

void Roster::expire() {
  if (ended() || !deadline_.passed()) return;
  const std::vector<int> absent = missing();
  fail(pkcommTimeout, "start-up: " + rank_list(absent) + " of " + std::to_string(nranks_) +
                          " did not join within " + std::to_string(deadline_.limit_ms()) + " ms");
}

void Roster::close() {
  if (!ended()) fail(pkcommInvalidUsage, kServed);
}

std::vector<int> Roster::missing() const {
  std::vector<int> absent;
  for (int rank = 0; rank < nranks_; ++rank) {
    if (!hellos_.contains(rank)) absent.push_back(rank);
  }
  return absent;
}

Table Roster::table() const {
  Table table;
  std::map<Nonce, int> index;
  for (const auto& [rank, hello] : hellos_) {  // in the order of the ranks
    const auto [known, is_new] = index.emplace(hello.process, static_cast<int>(table.processes.size()));
    if (is_new) table.processes.push_back({hello.pid, hello.place, hello.unix_name(), {}});
    table.processes[static_cast<std::size_t>(known->second)].ranks.push_back(rank);
    table.process_of_rank.push_back(known->second);
  }
  return table;
}

}  // namespace pkcomm::bootstrap
