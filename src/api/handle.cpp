// Pins and ends.
#include "api/handle.hpp"

#include <chrono>
#include <thread>

#include "base/process.hpp"

namespace pkcomm::api {
namespace {

constexpr std::uint64_t kMagic =
    0x6d6f63636d6d6b70;  // what a pointer to something else is not likely to begin with

std::atomic<pkcommComm*> all_handles{nullptr};

Status not_live() {
  return Status(pkcommInvalidArgument,
                "comm is no live communicator: it was destroyed or aborted, or never made");
}

}  // namespace

pkcommComm_t make_handle(std::unique_ptr<Communicator> communicator) {
  auto* const handle = new pkcommComm{kMagic, process_generation(), {0}, {true}, std::move(communicator)};
  handle->next = all_handles.load(std::memory_order_relaxed);
  while (!all_handles.compare_exchange_weak(handle->next, handle)) {
  }
  return handle;
}

Pin::Pin(pkcommComm_t handle) : handle_(handle) {
  if (handle == nullptr) {
    status_ = Status(pkcommInvalidArgument, "comm is null");
    return;
  }
  if (handle->magic != kMagic) {
    status_ = not_live();
    return;
  }
  if (handle->generation != process_generation()) {
    status_ = Status(pkcommInvalidUsage, "comm was made before a fork: it stayed with the parent process");
    return;
  }
  // Sequentially consistent with end_handle: either it sees this pin or this call sees the end.
  handle->pins.fetch_add(1);
  if (!handle->live.load()) {
    handle->pins.fetch_sub(1);
    status_ = not_live();
    return;
  }
  pinned_ = true;
}

Status end_handle(pkcommComm_t handle, bool abort) {
  if (handle == nullptr) return {};
  {
    const Pin pin(handle);
    PK_TRY(pin.status());
    if (abort) {
      pin.communicator().abort();
    } else if (Status status = pin.communicator().finalize(); status.code() == pkcommInProgress) {
      return status;
    }
  }
  if (!handle->live.exchange(false)) return not_live();
  while (handle->pins.load() > 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  handle->communicator.reset();
  return {};
}

}  // namespace pkcomm::api
