// Late stores happen in a seeded order, as bulk copies and unpublished stores of a GPU may.
#include <algorithm>

#include "platform/host/policy.hpp"

namespace pkcomm::host {

void LateStores::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes > 0) stores_.push_back({to, from, bytes, 0, 0});
}

void LateStores::put(Packet* to, std::uint64_t data, std::uint64_t tag) {
  stores_.push_back({reinterpret_cast<std::byte*>(to), nullptr, 0, data, tag});
}

void LateStores::happen() {
  if (stores_.size() > 1) std::shuffle(stores_.begin(), stores_.end(), random_);
  for (const Store& store : stores_) {
    if (store.from != nullptr) {
      std::memcpy(store.to, store.from, store.bytes);
    } else {
      auto* const packet = reinterpret_cast<Packet*>(store.to);
      packet->data = store.data;
      store_release(&packet->tag, store.tag);
    }
  }
  stores_.clear();
}

}  // namespace pkcomm::host
