// Symmetric memory through a communicator, and split, which like them is an agreement of all ranks outside the streams.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "bootstrap/unique_id.hpp"
#include "comm/communicator.hpp"

namespace pkcomm {
namespace {

std::string address_text(const void* ptr) { return std::to_string(reinterpret_cast<std::uintptr_t>(ptr)); }

}  // namespace

Result<std::uint64_t> Communicator::require_heap(const void* ptr, std::size_t bytes,
                                                 const char* argument) const {
  const auto offset = heap_->offset_of(ptr, bytes);
  if (offset) return *offset;
  return Status(pkcommInvalidArgument, std::string(argument) + " [" + address_text(ptr) + ", +" +
                                           std::to_string(bytes) +
                                           ") is not within one block of this rank's heap");
}

Result<void*> Communicator::heap_alloc(std::size_t bytes) {
  PK_TRY(ready());
  PK_ASSIGN(std::byte* const ptr,
            heap_->allocate(bytes, bootstrap::Deadline::after_ms(settings_.init_timeout_ms)));
  return static_cast<void*>(ptr);
}

Status Communicator::heap_free(void* ptr) {
  PK_TRY(ready());
  return heap_->free(ptr);
}

Result<void*> Communicator::peer_pointer(const void* ptr, int peer) const {
  PK_TRY(ready());
  PK_TRY(require_rank("peer", peer));
  PK_ASSIGN(const std::uint64_t offset, require_heap(ptr, 0, "ptr"));
  return static_cast<void*>(heap_->address(peer, offset));
}

Status Communicator::multicast_pointer(const void* ptr) const {
  PK_TRY(ready());
  PK_ASSIGN([[maybe_unused]] const std::uint64_t offset, require_heap(ptr, 0, "ptr"));
  return Status(pkcommUnsupported, "multicast is off: " + dispatcher_->capabilities().multicast_reason);
}

Result<pkcommDeviceView_t> Communicator::device_view() const {
  PK_TRY(ready());
  pkcommDeviceView_t device{};
  device.rank = rank_;
  device.nranks = nranks_;
  device.base = group_->memory().base();
  device.stride = group_->memory().stride();
  device.signals = layout_.signals;
  device.waited = layout_.waited;
  device.poison = offsetof(ControlBlock, poison);
  PK_TRY(backend_->complete(device));
  return device;
}

Result<pkcommWindow*> Communicator::register_window(void* ptr, std::size_t bytes) {
  PK_TRY(ready());
  // Every rank says what it has, also when it is nothing: so all of them fail together.
  struct Offer {
    std::uint64_t bytes, offset;
  };
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  const Offer mine{bytes, heap_->offset_of(ptr, bytes).value_or(kNone)};
  std::vector<Offer> all(static_cast<std::size_t>(nranks_));
  PK_TRY(membership_->all_gather(rank_, "window", std::as_bytes(std::span(&mine, 1)),
                                 std::as_writable_bytes(std::span(all)),
                                 bootstrap::Deadline::after_ms(settings_.init_timeout_ms)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].bytes != bytes) {
      return Status(pkcommInvalidUsage, "window: rank " + std::to_string(rank) + " registers " +
                                            std::to_string(all[rank].bytes) + " bytes, this rank (" +
                                            std::to_string(rank_) + ") " + std::to_string(bytes));
    }
    if (all[rank].offset == kNone) {
      return Status(pkcommUnsupported,
                    "window: the memory of rank " + std::to_string(rank) +
                        " is not of the symmetric heap, and this version can share no other");
    }
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].offset != mine.offset) {
      return Status(pkcommInvalidUsage, "window: rank " + std::to_string(rank) + " registers heap offset " +
                                            std::to_string(all[rank].offset) + ", this rank (" +
                                            std::to_string(rank_) + ") " + std::to_string(mine.offset));
    }
  }
  return windows_.insert(std::make_unique<pkcommWindow>(pkcommWindow{mine.offset, bytes})).first->get();
}

Status Communicator::deregister_window(pkcommWindow* window) {
  const auto found = std::find_if(windows_.begin(), windows_.end(),
                                  [&](const auto& known) { return known.get() == window; });
  if (found == windows_.end()) {
    return Status(pkcommInvalidArgument,
                  "window " + address_text(window) + " is no live window of this communicator");
  }
  windows_.erase(found);
  return {};
}

Result<std::optional<Communicator::Part>> Communicator::split(int color, int key) {
  PK_TRY(ready());
  if (color < 0 && color != PKCOMM_SPLIT_NOCOLOR) {
    return Status(pkcommInvalidArgument,
                  "color is " + std::to_string(color) + "; allowed: 0 and up, or PKCOMM_SPLIT_NOCOLOR");
  }
  const auto deadline = bootstrap::Deadline::after_ms(settings_.init_timeout_ms);
  struct Choice {
    int color, key;
  };
  const Choice mine{color, key};
  std::vector<Choice> all(static_cast<std::size_t>(nranks_));
  PK_TRY(membership_->all_gather(rank_, "split", std::as_bytes(std::span(&mine, 1)),
                                 std::as_writable_bytes(std::span(all)), deadline));
  std::vector<int> members;
  for (int rank = 0; rank < nranks_; ++rank) {
    if (all[static_cast<std::size_t>(rank)].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[static_cast<std::size_t>(a)].key < all[static_cast<std::size_t>(b)].key;
  });

  // The first of each new communicator makes its id.
  struct Offer {
    pkcommUniqueId id;
    pkcommResult_t result;
  };
  Offer offer{};
  std::string failure;
  if (color != PKCOMM_SPLIT_NOCOLOR && members.front() == rank_) {
    auto id = bootstrap::create_unique_id();
    offer.result = id.status().code();
    if (id.ok()) offer.id = id.value();
    failure = id.status().message();
  }
  std::vector<Offer> offers(static_cast<std::size_t>(nranks_));
  PK_TRY(membership_->all_gather(rank_, "split", std::as_bytes(std::span(&offer, 1)),
                                 std::as_writable_bytes(std::span(offers)), deadline));
  if (color == PKCOMM_SPLIT_NOCOLOR) return std::optional<Part>();
  const Offer& made = offers[static_cast<std::size_t>(members.front())];
  if (made.result != pkcommSuccess) {
    return Status(made.result, "split: rank " + std::to_string(members.front()) + " could not make an id" +
                                   (failure.empty() ? "" : ": " + failure));
  }
  const auto place = std::find(members.begin(), members.end(), rank_) - members.begin();
  return std::optional<Part>({made.id, static_cast<int>(place), static_cast<int>(members.size())});
}

}  // namespace pkcomm
