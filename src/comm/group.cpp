// Ends of groups: starts of communicators first, then all work at once, each rank's transfers as one.
#include "comm/group.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "base/process.hpp"

namespace pkcomm {
namespace {

thread_local Group* current = nullptr;

/// Sends to oneself are matched here: each needs its receive, in the same order.
Status check_self(const std::vector<Transfer>& transfers, int self) {
  std::vector<std::uint64_t> sends, receives;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer == self) (transfer.sends ? sends : receives).push_back(transfer.bytes);
  }
  if (sends == receives) return {};
  return Status(pkcommInvalidUsage, "group: this rank (" + std::to_string(self) + ") sends itself " +
                                        std::to_string(sends.size()) + " messages and receives " +
                                        std::to_string(receives.size()) +
                                        "; both must be the same messages in the same order");
}

}  // namespace

Status cause_of(std::span<const Status> results) {
  const auto failed = [](const Status& status) { return !status.ok(); };
  const auto of_itself = [&](const Status& status) {
    return failed(status) && status.code() != pkcommAborted && status.code() != pkcommRemoteError &&
           status.code() != pkcommTimeout;
  };
  auto found = std::find_if(results.begin(), results.end(), of_itself);
  if (found == results.end()) found = std::find_if(results.begin(), results.end(), failed);
  return found == results.end() ? Status() : *found;
}

Group* Group::open() { return current; }

void Group::start() {
  if (current == nullptr) current = new Group;
  ++current->depth_;
}

Status Group::end() {
  if (current == nullptr) return Status(pkcommInvalidUsage, "pkcommGroupEnd without pkcommGroupStart");
  if (--current->depth_ > 0) return {};
  const std::unique_ptr<Group> whole(std::exchange(current, nullptr));
  return whole->finish();
}

Status Group::merge_transfers() {
  // One launch for all transfers of a rank on a stream, in the place of the first.
  std::map<std::pair<Backend*, pkcommStream_t>, TransferWork*> merged;
  std::vector<Launch> kept;
  kept.reserve(launches_.size());
  for (Launch& launch : launches_) {
    auto* const work = std::get_if<TransferWork>(&launch.work);
    if (work == nullptr || work->numbered) {
      kept.push_back(std::move(launch));
      continue;
    }
    const auto place = std::pair(launch.backend, launch.stream);
    if (const auto found = merged.find(place); found != merged.end()) {
      auto& transfers = found->second->transfers;
      transfers.insert(transfers.end(), work->transfers.begin(), work->transfers.end());
    } else {
      kept.push_back(std::move(launch));
      merged.emplace(place, &std::get<TransferWork>(kept.back().work));
    }
  }
  for (const auto& [place, work] : merged) PK_TRY(check_self(work->transfers, place.first->rank()));
  launches_ = std::move(kept);
  return {};
}

Status Group::finish() {
  PK_TRY(failure_);
  PK_TRY(merge_transfers());
  if (starts_.size() == 1) PK_TRY(starts_.front()());
  if (starts_.size() > 1) {
    std::vector<Status> results(starts_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      auto thread = start_thread("pkcomm-start", [this, &results, i] { results[i] = starts_[i](); });
      if (thread.ok()) {
        threads.push_back(std::move(thread).value());
      } else {
        results[i] = thread.status();
      }
    }
    for (std::thread& thread : threads) thread.join();
    PK_TRY(cause_of(results));
  }
  if (launches_.size() == 1) {
    Backend* const backend = launches_.front().backend;
    return backend->launch(std::move(launches_.front()));
  } else if (!launches_.empty()) {
    Backend* const backend = launches_.front().backend;
    return backend->launch_group(std::move(launches_));
  }
  return {};
}

}  // namespace pkcomm
