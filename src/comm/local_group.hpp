// What the ranks of one communicator in one process share: the membership, the symmetric memory, and the list of those to
// be told when a peer process dies.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "bootstrap/membership.hpp"
#include "collectives/backend.hpp"
#include "memory/symmetric_memory.hpp"

namespace pkcomm {

class LocalGroup {
 public:
  /// The one of `membership` in this process; the first rank that asks makes it. `devices`: of every rank.
  static Result<std::shared_ptr<LocalGroup>> of(std::shared_ptr<bootstrap::Membership> membership,
                                                Platform& platform, std::vector<int> devices,
                                                std::uint64_t stride);

  bootstrap::Membership& membership() { return *membership_; }
  SymmetricMemory& memory() { return *memory_; }

  /// `backend` is told of deaths from now on, earlier ones included, until it is removed.
  void add(Backend* backend);
  void remove(Backend* backend);

 private:
  LocalGroup(std::shared_ptr<bootstrap::Membership> membership, std::unique_ptr<SymmetricMemory> memory)
      : membership_(std::move(membership)), memory_(std::move(memory)) {}
  void process_closed(int process, bootstrap::Departure how);

  const std::shared_ptr<bootstrap::Membership> membership_;
  const std::unique_ptr<SymmetricMemory> memory_;
  std::mutex mutex_;
  std::vector<Backend*> backends_;
  std::vector<int> dead_ranks_;
};

}  // namespace pkcomm
