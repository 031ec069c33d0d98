// Meetings: the last local rank to arrive acts for all. A meeting is left behind as soon as it is run or given up, so
// that a quick rank can arrive at the next one while slow ones still pick up the result of this one.
#include "bootstrap/membership.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace pkcomm::bootstrap {
namespace {

constexpr int kSliceMs = 10;  // how often a waiting rank looks at its own `cancelled`

}  // namespace

struct Membership::Meeting {
  std::string what;
  std::map<int, std::vector<std::byte>> arrived;  // by rank, with what it gives
  bool running = false;                           // all have arrived
  bool done = false;
  Status status;               // ranks that came for different things; in the end, how it went
  std::vector<std::byte> all;  // all_gather: of all ranks
};

Membership::Membership(Table table, int process, const Nonce& nonce)
    : table_(std::move(table)), process_(process), nonce_(nonce) {
  for (const int owner : table_.process_of_rank) {
    ranks_.push_back({owner, table_.processes[static_cast<std::size_t>(owner)].pid});
  }
  local_ranks_ = table_.processes[static_cast<std::size_t>(process)].ranks;
}

Membership::~Membership() {
  if (generation_ != process_generation()) return;  // inherited: threads and connections are the parent's
  if (watch_ != nullptr) watch_->stop();
}

Status Membership::together(int rank, const char* what, Deadline deadline,
                            const std::function<Status(Mesh&)>& work) {
  std::shared_ptr<Meeting> meeting;
  return meet(
      rank, what, deadline, {}, [&](Meeting&) { return work(*mesh_); }, nullptr, meeting);
}

Status Membership::start(int rank, Deadline deadline, const std::atomic<bool>* cancelled,
                         const Work& connect) {
  std::shared_ptr<Meeting> meeting;
  return meet(rank, "start-up", deadline, {}, connect, cancelled, meeting);
}

Status Membership::all_gather(int rank, const char* what, std::span<const std::byte> mine,
                              std::span<std::byte> all, Deadline deadline) {
  if (all.size() != mine.size() * ranks_.size()) {
    return {pkcommInternalError, std::string(what) + ": room for " + std::to_string(all.size()) + " bytes, " +
                                     std::to_string(ranks_.size()) + " ranks give " +
                                     std::to_string(mine.size()) + " each"};
  }
  std::shared_ptr<Meeting> meeting;
  PK_TRY(meet(
      rank, what, deadline, mine, [&](Meeting& m) { return gather(m, deadline); }, nullptr, meeting));
  std::copy(meeting->all.begin(), meeting->all.end(), all.begin());
  return {};
}

Status Membership::meet(int rank, const char* what, Deadline deadline, std::span<const std::byte> mine,
                        const Work& work, const std::atomic<bool>* cancelled,
                        std::shared_ptr<Meeting>& meeting) {
  std::unique_lock lock(mutex_);
  if (!broken_.ok()) return broken_;
  if (current_ == nullptr) {
    current_ = std::make_shared<Meeting>();
    current_->what = what;
  }
  meeting = current_;
  if (!meeting->arrived.emplace(rank, std::vector<std::byte>(mine.begin(), mine.end())).second) {
    return {pkcommInvalidUsage, std::string(what) + ": rank " + std::to_string(rank) + " is in \"" +
                                    meeting->what + "\" already, in another thread"};
  }
  if (meeting->what != what && meeting->status.ok()) {
    const int first = meeting->arrived.begin()->first == rank ? std::next(meeting->arrived.begin())->first
                                                              : meeting->arrived.begin()->first;
    meeting->status =
        Status(pkcommInvalidUsage, "rank " + std::to_string(first) + " is in \"" + meeting->what +
                                       "\", rank " + std::to_string(rank) + " in \"" + what + "\"");
  }
  if (meeting->arrived.size() < local_ranks_.size()) return wait(lock, *meeting, deadline, cancelled);

  meeting->running = true;
  current_ = nullptr;
  lock.unlock();
  Status status = run(*meeting, deadline, work);
  lock.lock();
  meeting->status = status;
  meeting->done = true;
  changed_.notify_all();
  return status;
}

Status Membership::run(Meeting& meeting, Deadline deadline, const Work& work) {
  if (meeting.status.ok()) return work(meeting);
  // The other processes are on their way into the same meeting: they are told instead of left waiting.
  return mesh_->refuse(meeting.what.c_str(), meeting.status, deadline);
}

Status Membership::wait(std::unique_lock<std::mutex>& lock, Meeting& meeting, Deadline deadline,
                        const std::atomic<bool>* cancelled) {
  const std::string what = meeting.what;
  while (!meeting.done) {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
      cancelled_.store(true, std::memory_order_relaxed);
      fail({pkcommAborted, what + ": the communicator was aborted"});
    }
    // By an abort, here or by another local rank; a rank that runs the meeting sees it for itself.
    if (cancelled_.load(std::memory_order_relaxed)) return broken_;
    if (!meeting.running && deadline.passed()) {
      std::vector<int> absent;
      for (const int rank : local_ranks_) {
        if (!meeting.arrived.contains(rank)) absent.push_back(rank);
      }
      fail({pkcommTimeout, what + ": " + rank_list(absent) + " of this process did not take part within " +
                               std::to_string(deadline.limit_ms()) + " ms"});
      continue;
    }
    // Once it runs it ends by the runner's deadline.
    const Deadline next = meeting.running ? Deadline::never() : deadline;
    if (cancelled != nullptr) {
      changed_.wait_until(lock, next.sooner(kSliceMs).time());
    } else if (next.is_never()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, next.time());
    }
  }
  return meeting.status;
}

/// Under the lock. Ends the meeting that ranks wait in, and all that would follow.
void Membership::fail(Status status) {
  if (broken_.ok()) broken_ = std::move(status);
  if (current_ != nullptr) {
    current_->status = broken_;
    current_->done = true;
    current_ = nullptr;
  }
  changed_.notify_all();
}

Status Membership::gather(Meeting& meeting, Deadline deadline) {
  std::vector<std::byte> message;
  for (const auto& [rank, data] : meeting.arrived) {
    const auto bytes = static_cast<std::uint32_t>(data.size());
    const auto* begin = reinterpret_cast<const std::byte*>(&bytes);
    message.insert(message.end(), begin, begin + sizeof(bytes));
    message.insert(message.end(), data.begin(), data.end());
  }
  if (message.size() > Mesh::kMaxMessageBytes) {
    Status status(pkcommInvalidArgument, meeting.what + ": the ranks of this process give " +
                                             std::to_string(message.size()) + " bytes, at most " +
                                             std::to_string(Mesh::kMaxMessageBytes) + " are allowed");
    return mesh_->refuse(meeting.what.c_str(), status, deadline);
  }
  std::vector<Mesh::Message> messages;
  PK_TRY(mesh_->exchange(meeting.what.c_str(), message, -1, messages, deadline));
  return spread(messages, meeting);
}

/// Sorts the processes' messages by rank. All processes see the same messages, hence find the same faults.
Status Membership::spread(const std::vector<Mesh::Message>& messages, Meeting& meeting) const {
  std::vector<std::span<const std::byte>> given(ranks_.size());
  for (std::size_t p = 0; p < messages.size(); ++p) {
    std::span<const std::byte> rest = messages[p].bytes;
    for (const int rank : table_.processes[p].ranks) {
      std::uint32_t bytes = 0;
      if (rest.size() >= sizeof(bytes)) std::memcpy(&bytes, rest.data(), sizeof(bytes));
      if (rest.size() < sizeof(bytes) + bytes) {
        return {pkcommInternalError,
                meeting.what + ": a message of " + name_of(static_cast<int>(p)) + " that cannot be read"};
      }
      given[static_cast<std::size_t>(rank)] = rest.subspan(sizeof(bytes), bytes);
      rest = rest.subspan(sizeof(bytes) + bytes);
    }
  }
  for (std::size_t rank = 1; rank < given.size(); ++rank) {
    if (given[rank].size() == given[0].size()) continue;
    return {pkcommInvalidUsage, meeting.what + ": rank 0 gives " + std::to_string(given[0].size()) +
                                    " bytes, rank " + std::to_string(rank) + " gives " +
                                    std::to_string(given[rank].size())};
  }
  for (const auto& data : given) meeting.all.insert(meeting.all.end(), data.begin(), data.end());
  return {};
}

Status Membership::watch(std::function<void(int process, Departure how)> lost) {
  std::vector<Watch::Connection> connections;
  for (int p = 0; p < processes(); ++p) {
    if (p != process_) connections.push_back({mesh_->descriptor_of(p), p});
  }
  if (connections.empty()) return {};
  auto report = [this, lost = std::move(lost)](int process) { lost(process, mesh_->departure_of(process)); };
  PK_ASSIGN(std::shared_ptr<Watch> watch, Watch::start(connections, std::move(report)));
  const std::lock_guard lock(mutex_);
  watch_ = std::move(watch);
  return {};
}

void Membership::leave(int rank) {
  if (generation_ != process_generation()) return;
  std::shared_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    if (!left_.insert(rank).second) return;
    if (left_.size() < local_ranks_.size()) {
      // The others cannot meet any more without this one.
      return fail(
          {pkcommRemoteError, "rank " + std::to_string(rank) + " of this process has left the communicator"});
    }
    watch = std::move(watch_);
  }
  if (watch != nullptr) watch->stop();
  const bool aborted = cancelled_.load(std::memory_order_relaxed);
  if (mesh_ != nullptr) mesh_->close(aborted ? Departure::kAborted : Departure::kLeft);
}

void Membership::cancel() {
  const std::lock_guard lock(mutex_);
  // Relaxed: the lock orders it for waiting ranks; a running exchange needs to see it soon, not in order.
  cancelled_.store(true, std::memory_order_relaxed);
  fail({pkcommAborted, "the communicator was aborted"});
}

}  // namespace pkcomm::bootstrap
