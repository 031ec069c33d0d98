// Objects that exist once per process, are never destroyed (threads use them until the process is gone), and begin anew
// in a forked child, which inherits neither threads nor the right to locks.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace pkcomm::host {

/// The process's T; `start` is called once with a new one. Its memory stays reachable through a static pointer, and so
/// does in a child what the parent had.
template <class T, class Start>
T& process_wide(Start start) {
  struct Slot {
    T value;
    Slot* inherited = nullptr;
  };
  static std::atomic<Slot*> instance{nullptr};
  static Slot* inherited = nullptr;  // written in a child that has one thread yet
  Slot* existing = instance.load(std::memory_order_acquire);
  if (existing != nullptr) return existing->value;
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) {
    pthread_atfork(nullptr, nullptr, [] {
      if (Slot* const parents = instance.exchange(nullptr, std::memory_order_acq_rel)) inherited = parents;
    });
  }
  Slot* const fresh = new Slot;
  fresh->inherited = inherited;
  if (instance.compare_exchange_strong(existing, fresh, std::memory_order_acq_rel)) {
    start(fresh->value);
    return fresh->value;
  }
  delete fresh;
  return existing->value;
}

/// A thread that takes no signals: those are the application's.
template <class F>
std::thread make_library_thread(F run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

/// The same, running until the process ends.
template <class F>
void start_library_thread(F run) {
  make_library_thread(std::move(run)).detach();
}

}  // namespace pkcomm::host
