// Membership::join: from an id and a rank to a connected membership. Three steps, each with the same deadline: a
// seat in this process, the rendezvous of all ranks, the connections among the processes.
#include <string>
#include <utility>

#include "bootstrap/membership.hpp"
#include "bootstrap/mesh_connect.hpp"
#include "bootstrap/process.hpp"
#include "bootstrap/rendezvous.hpp"
#include "bootstrap/rendezvous_client.hpp"
#include "bootstrap/seat.hpp"
#include "bootstrap/unique_id.hpp"

namespace pkcomm::bootstrap {
namespace {

Status check(int nranks, int rank, std::size_t agreement_bytes) {
  if (nranks < 1 || nranks > kMaxRanks) {
    return {pkcommInvalidArgument,
            "nranks is " + std::to_string(nranks) + ", allowed 1.." + std::to_string(kMaxRanks)};
  }
  if (rank < 0 || rank >= nranks) {
    return {pkcommInvalidArgument,
            "rank is " + std::to_string(rank) + ", allowed 0.." + std::to_string(nranks - 1)};
  }
  if (agreement_bytes > kMaxAgreementBytes) {
    return {pkcommInvalidArgument, "the agreement has " + std::to_string(agreement_bytes) +
                                       " bytes, at most " + std::to_string(kMaxAgreementBytes) +
                                       " are allowed"};
  }
  return {};
}

Result<Table> table_of(Result<Outcome> answer, const Describe& describe) {
  PK_ASSIGN(Outcome outcome, std::move(answer));
  if (outcome.failure) return Status(outcome.failure->code, std::move(outcome.failure->text));
  if (outcome.disagreement) {
    const Outcome::Disagreement& difference = *outcome.disagreement;
    std::string text = "start-up: rank " + std::to_string(difference.ranks[0]) + " and rank " +
                       std::to_string(difference.ranks[1]) + " disagree";
    if (describe) text += ": " + describe(difference.agreements[0], difference.agreements[1]);
    return Status(pkcommInvalidUsage, std::move(text));
  }
  return std::move(*outcome.table);
}

/// This process's part in the rendezvous where it was the one to make the id; given up to itself unless all went
/// well.
class Host {
 public:
  explicit Host(std::shared_ptr<Rendezvous> rendezvous) : rendezvous_(std::move(rendezvous)) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() {
    if (rendezvous_ != nullptr) rendezvous_->abandon();
  }
  Rendezvous* get() const { return rendezvous_.get(); }
  void retire() {
    if (rendezvous_ != nullptr) std::exchange(rendezvous_, nullptr)->retire();
  }

 private:
  std::shared_ptr<Rendezvous> rendezvous_;
};

}  // namespace

Result<std::shared_ptr<Membership>> Membership::join(const pkcommUniqueId& unique_id, int nranks, int rank,
                                                     std::span<const std::byte> agreement,
                                                     const Describe& describe, Deadline deadline,
                                                     const std::atomic<bool>* cancelled) {
  PK_TRY(check(nranks, rank, agreement.size()));
  PK_ASSIGN(const IdContent id, parse_unique_id(unique_id));
  PK_ASSIGN(Seat seat, Seat::take(id.nonce, rank));
  const bool is_host = id.creator == process_nonce();
  Host host(is_host ? Rendezvous::find(id.nonce) : nullptr);
  if (is_host && host.get() == nullptr) return Status(pkcommInvalidUsage, kServed);

  const Hello hello =
      make_hello(id.nonce, process_nonce(), nranks, rank, seat.listener().unix_name(), agreement);
  PK_ASSIGN(Table table, table_of(is_host ? host.get()->join(hello, deadline, cancelled)
                                          : join_elsewhere(id, hello, deadline, cancelled),
                                  describe));
  PK_TRY(table.check_reachable());

  const int process = table.process_of_rank[static_cast<std::size_t>(rank)];
  const std::shared_ptr<Membership> membership = seat.membership(
      [&] { return std::shared_ptr<Membership>(new Membership(std::move(table), process, id.nonce)); });
  const Status status = membership->start(rank, deadline, cancelled, [&](Meeting&) -> Status {
    Membership& self = *membership;
    PK_ASSIGN(
        std::vector<PrivateFd> connections,
        connect_mesh(self.table_, process, id.nonce, seat.listener(), deadline, cancelled, &self.cancelled_));
    self.mesh_ = std::make_unique<Mesh>(self.table_, process, std::move(connections), &self.cancelled_);
    // Nobody goes on before all are connected.
    std::vector<Mesh::Message> nothing;
    return self.mesh_->exchange("start-up", {}, -1, nothing, deadline);
  });
  if (!status.ok()) {
    membership->leave(rank);
    return status;
  }
  host.retire();
  return membership;
}

}  // namespace pkcomm::bootstrap
