// What belongs to this process as a whole and starts anew in a forked child, which inherits neither threads nor the
// right to locks: its generation, objects that exist once, and how the library starts its threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/status.hpp"

namespace pkcomm {

/// Differs between a process and the children it forked. Handles that carry another generation are inherited: their
/// threads and connections stayed with the parent.
std::uint64_t process_generation() noexcept;

/// Starts a thread that receives no signals, so that the program's handlers run on the program's threads. `name`: at
/// most 15 characters.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

/// The same for a thread that runs until the process ends.
Status start_background_thread(const char* name, std::function<void()> body);

/// One T for this process, made at first use and never destroyed: threads may use it while static objects go. After a
/// fork the child starts with a new T: the old one may be half changed or locked by a thread that exists no more.
template <typename T>
class PerProcess {
 public:
  constexpr PerProcess() = default;

  T& get() {
    return get([](T&) {});
  }

  /// `start` is called once with each new T, by the thread that made it; others may be using it by then.
  template <typename Start>
  T& get(Start start) {
    Slot* slot = current_.load(std::memory_order_acquire);  // partner: the exchange below
    const std::uint64_t generation = process_generation();
    while (slot == nullptr || slot->generation != generation) {
      // The old slot stays reachable, so that leak checkers see what is kept on purpose.
      Slot* const fresh = new Slot{generation, slot, {}};
      if (current_.compare_exchange_strong(slot, fresh, std::memory_order_acq_rel)) {
        start(fresh->value);
        return fresh->value;
      }
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

}  // namespace pkcomm
