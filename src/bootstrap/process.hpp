// What is true of this process as a whole and starts anew in a forked child: its generation, its nonce, state that a
// child must not inherit, and how the library starts its threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/status.hpp"
#include "bootstrap/nonce.hpp"

namespace pkcomm::bootstrap {

/// Differs between a process and the children it forked. Handles that carry another generation are inherited: their
/// threads and connections stayed with the parent.
std::uint64_t process_generation() noexcept;

/// Names this process; drawn at first use, and anew after a fork.
Nonce process_nonce();

/// Equal for two processes that can reach each other's abstract Unix sockets: same running kernel and same network
/// namespace. 0 where that cannot be told. For words and early errors, never as proof.
std::uint64_t place_of_process();

/// Starts a thread that receives no signals, so that the program's handlers run on the program's threads. `name`: at
/// most 15 characters.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

/// One T for this process, made at first use and never destroyed: threads may use it while static objects go. After a
/// fork the child starts with a new T: the old one may be half changed or locked by a thread that exists no more.
template <typename T>
class PerProcess {
 public:
  constexpr PerProcess() = default;

  T& get() {
    Slot* slot = current_.load(std::memory_order_acquire);  // partner: the exchange below
    const std::uint64_t generation = process_generation();
    while (slot == nullptr || slot->generation != generation) {
      // The old slot stays reachable, so that leak checkers see what is kept on purpose.
      Slot* fresh = new Slot{generation, slot, {}};
      if (current_.compare_exchange_strong(slot, fresh, std::memory_order_acq_rel)) return fresh->value;
      delete fresh;
    }
    return slot->value;
  }

 private:
  struct Slot {
    std::uint64_t generation;
    Slot* previous;
    T value;
  };
  std::atomic<Slot*> current_{nullptr};
};

}  // namespace pkcomm::bootstrap
