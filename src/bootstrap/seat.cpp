#include "bootstrap/seat.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "bootstrap/process.hpp"
#include "bootstrap/wire.hpp"

namespace pkcomm::bootstrap {

struct Seat::Shared {
  Listener listener;
  std::set<int> ranks;
  int seats = 0;
  std::shared_ptr<Membership> membership;
};

namespace {

// Ids remembered after their start-up, 64 KiB worth. An older one is refused by its listener, which is gone.
constexpr std::size_t kRemembered = 4096;

struct Ids {
  std::mutex mutex;
  std::map<Nonce, std::shared_ptr<Seat::Shared>> starting;
  std::set<Nonce> used;
  std::deque<Nonce> used_in_order;
};
PerProcess<Ids> ids;

void remember(Ids& all, const Nonce& nonce) {
  all.used.insert(nonce);
  all.used_in_order.push_back(nonce);
  if (all.used_in_order.size() <= kRemembered) return;
  all.used.erase(all.used_in_order.front());
  all.used_in_order.pop_front();
}

}  // namespace

Seat::Seat(const Nonce& nonce, std::shared_ptr<Shared> shared) : nonce_(nonce), shared_(std::move(shared)) {}

Result<Seat> Seat::take(const Nonce& nonce, int rank) {
  Ids& all = ids.get();
  const std::lock_guard lock(all.mutex);
  auto found = all.starting.find(nonce);
  if (found == all.starting.end()) {
    if (all.used.contains(nonce)) return Status(pkcommInvalidUsage, kServed);
    PK_ASSIGN(Listener listener, Listener::unix_any());
    auto shared = std::make_shared<Shared>();
    shared->listener = std::move(listener);
    found = all.starting.emplace(nonce, std::move(shared)).first;
    remember(all, nonce);
  }
  const std::shared_ptr<Shared>& shared = found->second;
  if (shared->ranks.contains(rank)) {
    return Status(pkcommInvalidUsage, "start-up: rank " + std::to_string(rank) +
                                          " has joined with this id already in this process");
  }
  // The ranks of this process are known by then, and this one is not among them.
  if (shared->membership != nullptr) return Status(pkcommInvalidUsage, kServed);
  shared->ranks.insert(rank);
  ++shared->seats;
  return Seat(nonce, shared);
}

Seat::~Seat() {
  if (shared_ == nullptr) return;
  Ids& all = ids.get();
  std::shared_ptr<Shared> last;  // goes after the lock
  const std::lock_guard lock(all.mutex);
  if (--shared_->seats > 0) return;
  all.starting.erase(nonce_);
  last = std::move(shared_);
}

const Listener& Seat::listener() const { return shared_->listener; }

std::shared_ptr<Membership> Seat::membership(const std::function<std::shared_ptr<Membership>()>& make) {
  const std::lock_guard lock(ids.get().mutex);
  if (shared_->membership == nullptr) shared_->membership = make();
  return shared_->membership;
}

}  // namespace pkcomm::bootstrap
