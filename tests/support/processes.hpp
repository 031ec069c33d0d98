// Ranks as processes of their own: forked, watched with a limit, and gone when the test is. What they have to say goes
// through shared memory; Catch2's assertions are for the parent alone. Fork before the parent makes any thread.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "pkcomm/pkcomm.h"
#include "support/catch.hpp"
#include "support/coverage.hpp"
#include "support/cuda_use.hpp"
#include "support/world.hpp"

namespace pkcomm::test {

inline void sleep_ms(std::int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// A value that this process and the ones that it forks later have in common.
template <class T>
class Shared {
 public:
  Shared() {
    void* const at = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    value_ = new (at) T();
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { ::munmap(value_, sizeof(T)); }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

/// Lines of text from any process; for use in Shared. What is too much is dropped.
class SharedText {
 public:
  void add(const std::string& line) {
    const std::size_t bytes = line.size() + 1;
    const std::size_t at = used_.fetch_add(bytes);
    if (at + bytes > sizeof text_) return;
    std::memcpy(text_ + at, line.data(), line.size());
    text_[at + line.size()] = '\n';
  }
  /// After the writers have ended.
  std::string text() const { return std::string(text_, std::min(used_.load(), sizeof text_)); }

 private:
  std::atomic<std::size_t> used_{0};
  char text_[1 << 16] = {};
};

/// A unique id that one process makes for the others; for use in Shared.
class SharedId {
 public:
  /// Made by the caller and given to those who wait.
  pkcommUniqueId make() {
    pkcommUniqueId id{};
    if (pkcommGetUniqueId(&id) == pkcommSuccess) id_ = id;
    made_.store(1, std::memory_order_release);
    return id_;
  }
  pkcommUniqueId wait() const {
    for (int ms = 0; made_.load(std::memory_order_acquire) == 0 && ms < kLimitMs; ++ms) sleep_ms(1);
    return id_;
  }

 private:
  std::atomic<int> made_{0};
  pkcommUniqueId id_{};
};

/// A forked process.
class Process {
 public:
  static constexpr int kRunning = -1;

  /// Ends with what `body` returns.
  explicit Process(const std::function<int()>& body) {
    REQUIRE_FALSE(cuda_in_use());  // it does not survive a fork
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    keep_coverage();
    ::_exit(code);
  }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ > 0 && code_ == kRunning) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  /// The exit code, 128 and the signal that ended it, or kRunning after limit_ms.
  int wait(std::int64_t limit_ms = kLimitMs) {
    for (std::int64_t ms = 0; code_ == kRunning; ++ms) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      } else if (ms >= limit_ms) {
        break;
      } else {
        sleep_ms(1);
      }
    }
    return code_;
  }

 private:
  pid_t pid_ = -1;
  int code_ = kRunning;
};

}  // namespace pkcomm::test
