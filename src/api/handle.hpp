// Communicator handles. A handle's small block is never freed, so that a call on a handle that was destroyed, or was
// inherited by a forked child, is an error and not an accident. A call pins the communicator; its end waits for pins.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.hpp"
#include "comm/communicator.hpp"

struct pkcommComm {
  std::uint64_t magic;
  std::uint64_t generation;  // of the process that made it
  std::atomic<std::uint32_t> pins{0};
  std::atomic<bool> live{true};
  std::unique_ptr<pkcomm::Communicator> communicator;
  pkcommComm* next = nullptr;  // all handles of the process: blocks stay reachable
};

namespace pkcomm::api {

pkcommComm_t make_handle(std::unique_ptr<Communicator> communicator);
/// Ends a handle; one caller succeeds. With `abort`, pinned calls are told to end.
Status end_handle(pkcommComm_t handle, bool abort);

class Pin {
 public:
  explicit Pin(pkcommComm_t handle);
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() {
    if (pinned_) handle_->pins.fetch_sub(1, std::memory_order_release);
  }
  const Status& status() const { return status_; }
  Communicator& communicator() const { return *handle_->communicator; }

 private:
  pkcommComm_t handle_;
  bool pinned_ = false;
  Status status_;
};

}  // namespace pkcomm::api
