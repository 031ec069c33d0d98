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

/// The process's T; `start` is called once with a new one. Its memory stays reachable through a static pointer.
template <class T, class Start>
T& process_wide(Start start) {
  static std::atomic<T*> instance{nullptr};
  T* existing = instance.load(std::memory_order_acquire);
  if (existing != nullptr) return *existing;
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) {
    pthread_atfork(nullptr, nullptr, [] { instance.store(nullptr, std::memory_order_release); });
  }
  T* const fresh = new T;
  if (instance.compare_exchange_strong(existing, fresh, std::memory_order_acq_rel)) {
    start(*fresh);
    return *fresh;
  }
  delete fresh;
  return *existing;
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
