// The record of ids outlives their start-up: an id that has served is refused at once, not after a wait for a
// listener that is gone.
#include "bootstrap/seat.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/process.hpp"
#include "bootstrap/wire.hpp"

namespace pkcomm::bootstrap {

struct Seat::Shared {
  Listener listener;
  int seats = 0;
  std::shared_ptr<Membership> membership;
};

namespace {

// Ids remembered after their start-up. An older one is refused by its listener, which is gone.
constexpr std::size_t kRemembered = 4096;

/// What this process has done with an id.
struct Use {
  std::set<int> ranks;  // that took a seat
  bool served = false;  // the membership exists, or did
  std::shared_ptr<Seat::Shared> starting;
};

struct Ids {
  std::mutex mutex;
  std::map<Nonce, Use> used;
  std::deque<Nonce> in_order;
};
PerProcess<Ids> ids;

Use& use_of(Ids& all, const Nonce& nonce) {
  const auto [found, is_new] = all.used.try_emplace(nonce);
  if (is_new) {
    all.in_order.push_back(nonce);
    if (all.in_order.size() > kRemembered) {
      all.used.erase(all.in_order.front());
      all.in_order.pop_front();
    }
  }
  return found->second;
}

}  // namespace

Seat::Seat(const Nonce& nonce, std::shared_ptr<Shared> shared) : nonce_(nonce), shared_(std::move(shared)) {}

Result<Seat> Seat::take(const Nonce& nonce, int rank) {
  Ids& all = ids.get();
  const std::lock_guard lock(all.mutex);
  Use& use = use_of(all, nonce);
  if (use.served) return Status(pkcommInvalidUsage, kServed);
  // A rank that comes for the first time is let in after a failure too: the rendezvous tells it the reason.
  if (use.ranks.contains(rank)) {
    if (use.starting == nullptr) return Status(pkcommInvalidUsage, kServed);
    return Status(pkcommInvalidUsage, "start-up: rank " + std::to_string(rank) +
                                          " is joining with this id already in this process");
  }
  if (use.starting == nullptr) {
    PK_ASSIGN(Listener listener, Listener::unix_any());
    use.starting = std::make_shared<Shared>();
    use.starting->listener = std::move(listener);
  }
  use.ranks.insert(rank);
  ++use.starting->seats;
  return Seat(nonce, use.starting);
}

Seat::~Seat() {
  if (shared_ == nullptr) return;
  Ids& all = ids.get();
  std::shared_ptr<Shared> last;  // goes after the lock
  const std::lock_guard lock(all.mutex);
  if (--shared_->seats > 0) return;
  if (const auto use = all.used.find(nonce_); use != all.used.end()) use->second.starting = nullptr;
  last = std::move(shared_);
}

const Listener& Seat::listener() const { return shared_->listener; }

std::shared_ptr<Membership> Seat::membership(const std::function<std::shared_ptr<Membership>()>& make) {
  Ids& all = ids.get();
  const std::lock_guard lock(all.mutex);
  if (shared_->membership == nullptr) {
    shared_->membership = make();
    use_of(all, nonce_).served = true;
  }
  return shared_->membership;
}

}  // namespace pkcomm::bootstrap
