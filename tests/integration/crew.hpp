// Several processes with one body, each with a number and a place for what it finds wrong; their output can be captured.
// They are killed when their time is over or the test ends. Fork before the test's process has called pkcomm.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "support/processes.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PK_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PK_TEST_SANITIZED 1
#endif
#endif

namespace pkcomm::test {

/// Sanitizers keep freed memory back, and their own locks and reports do not survive the fork of a process with threads.
#ifdef PK_TEST_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Polls until the condition holds; false after the limit.
inline bool comes_true(const std::function<bool()>& condition, std::int64_t limit_ms = kLimitMs) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return condition();
    sleep_ms(1);
  }
  return true;
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline int entries(const char* directory) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

/// The result in words, and the text of the calling thread's last failure.
inline std::string words(pkcommResult_t result) {
  return std::string(pkcommGetErrorString(result)) + ": " + pkcommGetLastError(nullptr);
}

/// Ids in the order in which a test makes them; for use in Shared.
struct Ids {
  SharedId id[64];
  pkcommUniqueId make(int index = 0) { return id[index].make(); }
  pkcommUniqueId wait(int index = 0) const { return id[index].wait(); }
};

class Crew {
 public:
  using Body = std::function<void(int process, Failures& failures)>;
  struct Ending {
    int code =
        -1;  ///< exit code, 128 and the signal that ended it, or Process::kRunning: it was killed by the test
    std::string failures;
    std::string out, err;  ///< what it wrote, where captured
  };
  static constexpr int kMost = 80;

  enum Output { kInherited, kCaptured };
  explicit Crew(Output output = kInherited) : captures_(output == kCaptured) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    for (const int fd : files_) ::close(fd);
  }

  /// Starts `count` more; they are numbered from 0 in the order of their start. A body that returns ends its process by
  /// _exit(0); one that wants exit handlers or another code calls exit(), after report().
  void start(int count, const Body& body) {
    (void)device_count();  // asked once, for all of them
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<int>(members_.size());
      REQUIRE(number < kMost);
      std::snprintf(texts_->text[number], sizeof texts_->text[number], "did not report\n");
      for (int file = 0; captures_ && file < 2; ++file)
        files_.push_back(::memfd_create("output", MFD_CLOEXEC));
      std::fflush(nullptr);
      members_.emplace_back([&, number]() -> int {
        for (const int signal : {SIGINT, SIGTERM, SIGABRT, SIGSEGV})
          ::signal(signal, SIG_DFL);  // not Catch2's
        for (int file = 0; captures_ && file < 2; ++file)
          ::dup2(files_[files_.size() - 2 + file], STDOUT_FILENO + file);
        Failures failures;
        body(number, failures);
        report(number, failures);
        return 0;
      });
    }
  }
  void report(int number, const Failures& failures) {
    std::snprintf(texts_->text[number], sizeof texts_->text[number], "%s", failures.text().c_str());
  }

  const Process& operator[](int number) const { return members_[static_cast<std::size_t>(number)]; }

  Ending wait(int number, std::int64_t limit_ms = kLimitMs) {
    Process& member = members_[static_cast<std::size_t>(number)];
    Ending ending;
    ending.code = member.wait(limit_ms);
    const bool late = ending.code == Process::kRunning;
    if (late) {
      member.send(SIGKILL);
      member.wait();
    }
    ending.failures = texts_->text[number];
    if (late) ending.failures += "killed after " + std::to_string(limit_ms) + " ms\n";
    if (captures_) {
      ending.out = content(files_[2 * static_cast<std::size_t>(number)]);
      ending.err = content(files_[2 * static_cast<std::size_t>(number) + 1]);
    }
    return ending;
  }

  /// Waits for all; what they found wrong, one after the other. Empty: nothing, and all codes are 0.
  std::string wait_all(std::int64_t limit_ms = kLimitMs) {
    const auto begin = std::chrono::steady_clock::now();
    std::string all;
    for (int number = 0; number < static_cast<int>(members_.size()); ++number) {
      const auto left = limit_ms - static_cast<std::int64_t>(1000 * seconds_since(begin));
      const Ending ending = wait(number, std::max<std::int64_t>(left, 0));
      const std::string name = "process " + std::to_string(number);
      if (!ending.failures.empty()) all += name + ": " + ending.failures;
      if (ending.code != 0) all += name + " ended with code " + std::to_string(ending.code) + "\n";
    }
    return all;
  }

 private:
  struct Texts {
    char text[kMost][4000];
  };
  static std::string content(int fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }

  const bool captures_;
  Shared<Texts> texts_;
  std::vector<int> files_;  // stdout and stderr of each
  std::vector<Process> members_;
};

/// The life of one rank in a process of its own: init, stream, `body`, destroy. False where init failed, which counts as
/// a failure.
inline bool run_rank(int nranks, const pkcommUniqueId& id, int rank, Failures& failures,
                     const std::function<void(Rank&)>& body, pkcommConfig_t config = limited_config()) {
  use_device(config.device == PKCOMM_UNDEFINED ? device_of(rank) : config.device);
  pkcommComm_t comm = nullptr;
  const pkcommResult_t result = pkcommCommInitRankConfig(&comm, nranks, id, rank, &config);
  if (result != pkcommSuccess) {
    failures.add("rank " + std::to_string(rank) + ": init: " + words(result));
    return false;
  }
  pkcommStream_t stream = nullptr;
  if (pkcommStreamCreate(&stream) != pkcommSuccess) failures.add(pkcommGetLastError(nullptr));
  Rank self(rank, nranks, comm, stream, failures);
  body(self);
  if (self.comm != nullptr) self.ok(pkcommCommDestroy(self.comm), "destroy");
  self.ok(pkcommStreamDestroy(stream), "stream destroy");
  return true;
}

/// All ranks of a communicator as threads of this process, which may be a crew's.
inline void run_threads(int nranks, Failures& failures, const std::function<void(Rank&)>& body,
                        pkcommConfig_t config = limited_config()) {
  pkcommUniqueId id;
  if (pkcommGetUniqueId(&id) != pkcommSuccess) return failures.add(pkcommGetLastError(nullptr));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nranks; ++rank) {
    threads.emplace_back([&, rank] { run_rank(nranks, id, rank, failures, body, config); });
  }
  for (std::thread& thread : threads) thread.join();
}

/// All ranks add up `value`, one int; the sum must be `expected`.
inline bool expect_sum(Rank& self, int value, int expected, const std::string& what = "all_reduce") {
  Visible<int> x{value, 0};
  return self.ok(pkcommAllReduce(&x[0], &x[1], 1, pkcommInt32, pkcommSum, self.comm, self.stream), what) &&
         self.synchronize(what) &&
         self.expect(x[1] == expected, what + ": the sum is " + std::to_string(x[1]) + " instead of " +
                                           std::to_string(expected));
}

/// Sum of `count` floats, element i of rank r being i % 7 + r, all of it compared.
inline bool expect_float_sums(Rank& self, std::size_t count, const std::string& what = "all_reduce") {
  Visible<float> in(count), out(count, -1);
  for (std::size_t i = 0; i < count; ++i)
    in[i] = static_cast<float>(i % 7 + static_cast<std::size_t>(self.rank));
  if (!self.ok(
          pkcommAllReduce(in.data(), out.data(), count, pkcommFloat32, pkcommSum, self.comm, self.stream),
          what) ||
      !self.synchronize(what)) {
    return false;
  }
  const auto ranks = static_cast<std::size_t>(self.nranks);
  for (std::size_t i = 0; i < count; ++i) {
    const auto wanted = static_cast<float>(ranks * (i % 7) + ranks * (ranks - 1) / 2);
    if (out[i] == wanted) continue;
    self.fail(what + ": element " + std::to_string(i) + " of " + std::to_string(count) + " is " +
              std::to_string(out[i]) + " instead of " + std::to_string(wanted));
    return false;
  }
  return true;
}

/// The sum of rank + 1 over all ranks.
inline void sum_of_ranks(Rank& self) { expect_sum(self, self.rank + 1, self.nranks * (self.nranks + 1) / 2); }

}  // namespace pkcomm::test
