// One group for each membership of the process, found by address.
#include "comm/local_group.hpp"

#include <map>

#include "base/process.hpp"

namespace pkcomm {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<const bootstrap::Membership*, std::weak_ptr<LocalGroup>> groups;
};
PerProcess<Registry> registry;

}  // namespace

Result<std::shared_ptr<LocalGroup>> LocalGroup::of(std::shared_ptr<bootstrap::Membership> membership,
                                                   Platform& platform, std::vector<int> devices,
                                                   std::uint64_t stride) {
  Registry& known = registry.get();
  std::shared_ptr<LocalGroup> fresh;
  {
    const std::lock_guard lock(known.mutex);
    std::erase_if(known.groups, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<LocalGroup>& entry = known.groups[membership.get()];
    if (auto existing = entry.lock()) return existing;
    PK_ASSIGN(auto memory, SymmetricMemory::reserve(*membership, platform, std::move(devices), stride));
    fresh.reset(new LocalGroup(std::move(membership), std::move(memory)));
    entry = fresh;
  }
  // Weak: the membership would otherwise keep the group that keeps it.
  PK_TRY(fresh->membership_->watch([weak = std::weak_ptr(fresh)](int process, bootstrap::Departure how) {
    if (const auto group = weak.lock()) group->process_closed(process, how);
  }));
  return fresh;
}

void LocalGroup::add(Backend* backend) {
  const std::lock_guard lock(mutex_);
  backends_.push_back(backend);
  for (const int rank : dead_ranks_) backend->rank_died(rank);
}

void LocalGroup::remove(Backend* backend) {
  const std::lock_guard lock(mutex_);
  std::erase(backends_, backend);
}

void LocalGroup::process_closed(int process, bootstrap::Departure how) {
  // Who left or aborted has said so in its memory, in order with its work.
  if (how != bootstrap::Departure::kDied) return;
  const std::lock_guard lock(mutex_);
  const auto& ranks = membership_->ranks();
  for (int rank = 0; rank < membership_->nranks(); ++rank) {
    if (ranks[static_cast<std::size_t>(rank)].process != process) continue;
    dead_ranks_.push_back(rank);
    for (Backend* const backend : backends_) backend->rank_died(rank);
  }
}

}  // namespace pkcomm
