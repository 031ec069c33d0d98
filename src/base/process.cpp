// The fork handler is registered when the library is loaded, since one registered by one thread while another forks
// would come too late.
#include "base/process.hpp"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <utility>

namespace pkcomm {
namespace {

std::atomic<std::uint64_t> generation{1};

// Relaxed: a child has one thread.
void child_after_fork() { generation.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const int kForkHandler = pthread_atfork(nullptr, nullptr, child_after_fork);

}  // namespace

std::uint64_t process_generation() noexcept { return generation.load(std::memory_order_relaxed); }

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread begins with its maker's mask
  Result<std::thread> result = Status(pkcommInternalError, "");
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    result = std::move(thread);
  } catch (const std::system_error& error) {
    result = Status(pkcommSystemError, std::string("cannot start thread ") + name + ": " + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

Status start_background_thread(const char* name, std::function<void()> body) {
  PK_ASSIGN(std::thread thread, start_thread(name, std::move(body)));
  thread.detach();
  return {};
}

}  // namespace pkcomm
