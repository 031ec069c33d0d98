// What the tests of start-up share: ranks as threads, and processes forked before they have threads. Catch2's checks
// belong to the test's own thread, so ranks hand back a Status and processes a text, empty where all was well.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/membership.hpp"
#include "bootstrap/unique_id.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define PK_TEST_LEAKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PK_TEST_LEAKS 1
#endif
#endif
#ifdef PK_TEST_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

namespace pkcomm::bootstrap::test {

/// Whether memory is out of reach now. Forked processes end by _exit, where nobody else would look.
inline bool leaks() {
#ifdef PK_TEST_LEAKS
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

using MembershipPtr = std::shared_ptr<Membership>;
inline constexpr std::int64_t kPlentyMs =
    30'000;  // for what should take milliseconds, on a machine that is busy

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

inline Result<MembershipPtr> join(const pkcommUniqueId& id, int nranks, int rank,
                                  std::int64_t limit_ms = kPlentyMs, const std::string& agreement = "same",
                                  const std::atomic<bool>* cancelled = nullptr) {
  const Describe describe = [](std::span<const std::byte> one, std::span<const std::byte> other) {
    const auto text = [](std::span<const std::byte> bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    return "setting is " + text(one) + " and " + text(other);
  };
  return Membership::join(id, nranks, rank, bytes_of(agreement), describe, Deadline::after_ms(limit_ms),
                          cancelled);
}

inline pkcommUniqueId new_id() {
  const auto id = create_unique_id();
  return id.ok() ? id.value() : pkcommUniqueId{};
}

/// Runs `body(rank)` in a thread for each of `ranks`; gives their results in that order.
inline std::vector<Status> as_threads(const std::vector<int>& ranks,
                                      const std::function<Status(int rank)>& body) {
  std::vector<Status> results(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = body(ranks[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

inline std::vector<int> first_ranks(int count) {
  std::vector<int> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.push_back(rank);
  return ranks;
}

/// All ranks give 1000 + rank and must receive everybody's.
inline Status check_gather(Membership& membership, int rank, std::int64_t limit_ms = kPlentyMs) {
  const int mine = 1000 + rank;
  std::vector<int> all(static_cast<std::size_t>(membership.nranks()));
  PK_TRY(membership.all_gather(rank, "gather", std::as_bytes(std::span(&mine, 1)),
                               std::as_writable_bytes(std::span(all)), Deadline::after_ms(limit_ms)));
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r] != 1000 + static_cast<int>(r)) {
      return {pkcommInternalError, "rank " + std::to_string(r) + " gave " + std::to_string(all[r])};
    }
  }
  return {};
}

/// Joins, gathers once, leaves.
inline Status whole_life(const pkcommUniqueId& id, int nranks, int rank) {
  PK_ASSIGN(const MembershipPtr membership, join(id, nranks, rank));
  const Status status = check_gather(*membership, rank);
  membership->leave(rank);
  return status;
}

inline double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

inline int entries(const char* directory) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}
inline int open_descriptors() { return entries("/proc/self/fd"); }
inline int threads_alive() { return entries("/proc/self/task"); }
/// Threads of this process that bear the name; a sanitizer has threads of its own.
inline int threads_named(const std::string& name) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    if (comm == name) ++count;
  }
  return count;
}
/// A thread that was joined stays in /proc for a moment.
inline bool comes_true(const std::function<bool()>& condition, int limit_ms = 5000) {
  for (int waited = 0; waited < limit_ms; ++waited) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

/// Forked processes and the memory that they share with the test.
class Processes {
 public:
  struct Shared {
    std::atomic<int> ids{0};  ///< how many of `id` are ready
    pkcommUniqueId id[64];
    std::atomic<int> words[64] = {};
    struct {
      char text[1000];
      double milliseconds;
    } report[80];
  };
  using Body = std::function<std::string(int process, Shared& shared)>;

  Processes() {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared();
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0);
    }
    ::munmap(shared_, sizeof(Shared));
  }

  Shared& shared() { return *shared_; }
  pid_t pid(int process) const { return pids_[static_cast<std::size_t>(process)]; }

  void start(int count, const Body& body) {
    for (int process = 0; process < count; ++process) {
      std::strcpy(shared_->report[process].text, "did not report");
      std::fflush(nullptr);
      const pid_t pid = ::fork();
      if (pid == 0) {
        const auto begin = std::chrono::steady_clock::now();
        std::string text = body(process, *shared_);
        shared_->report[process].milliseconds = milliseconds_since(begin);
        if (leaks()) text += "; memory leaked";
        std::snprintf(shared_->report[process].text, sizeof(shared_->report[process].text), "%s",
                      text.c_str());
        ::_exit(0);
      }
      pids_.push_back(pid);
    }
  }
  /// Waits for one process; gives its text, or how it ended.
  std::string finish(int process) {
    int status = 0;
    ::waitpid(pid(process), &status, 0);
    pids_[static_cast<std::size_t>(process)] = 0;
    if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return "exit code " + std::to_string(WEXITSTATUS(status));
    return shared_->report[process].text;
  }
  /// The texts of all processes that said something, a line each.
  std::string finish_all() {
    std::string lines;
    for (int process = 0; process < static_cast<int>(pids_.size()); ++process) {
      if (pid(process) == 0) continue;
      const std::string text = finish(process);
      if (!text.empty()) lines += std::to_string(process) + ": " + text + "\n";
    }
    return lines;
  }

 private:
  Shared* shared_ = nullptr;
  std::vector<pid_t> pids_;
};

/// Process 0 makes the id number `index`, the others wait for it. Ids are made in order.
inline pkcommUniqueId share_id(Processes::Shared& shared, int process, int index = 0) {
  if (process == 0) {
    shared.id[index] = new_id();
    shared.ids.store(index + 1, std::memory_order_release);
  }
  while (shared.ids.load(std::memory_order_acquire) <= index) ::usleep(200);
  return shared.id[index];
}

inline void await_word(const std::atomic<int>& word, int value) {
  while (word.load() < value) ::usleep(500);
}

/// "" for success, else the code and the message.
inline std::string text_of(const Status& status) {
  return status.ok() ? std::string() : std::to_string(status.code()) + " " + status.message();
}

}  // namespace pkcomm::bootstrap::test
