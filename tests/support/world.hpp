// Ranks of one communicator as threads of this process. Each runs `body`; what it finds wrong is collected, since Catch2's
// assertions are for one thread, and reported by the test when all ranks are done. Waits end after kLimitMs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "pkcomm/pkcomm.h"
#include "support/catch.hpp"
#include "support/device_memory.hpp"
#include "support/platform.hpp"

namespace pkcomm::test {

inline constexpr std::int64_t kLimitMs = 60000;

/// Sets environment variables for as long as it lives.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) {
      const char* const before = std::getenv(name.c_str());
      before_.emplace_back(name, before == nullptr ? std::string() : before, before != nullptr);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value, was_set] : before_) {
      if (was_set) {
        ::setenv(name.c_str(), value.c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }

 private:
  std::vector<std::tuple<std::string, std::string, bool>> before_;
};

class Failures {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (texts_.size() < 10) texts_.push_back(text);
    ++count_;
  }
  std::string text() const {
    std::string all;
    for (const std::string& text : texts_) all += text + '\n';
    if (count_ > texts_.size()) all += "and " + std::to_string(count_ - texts_.size()) + " more\n";
    return all;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
  std::size_t count_ = 0;
};

/// How work on a stream ended.
struct Ending {
  pkcommResult_t result;
  std::string text;
};

/// Waits for a stream, and gives the failure of its work: where the stream does not tell (CUDA's never does), the
/// communicator.
inline Ending finish(pkcommComm_t comm, pkcommStream_t stream) {
  pkcommResult_t result = pkcommStreamSynchronize(stream);
  if (result != pkcommSuccess) return {result, pkcommGetLastError(nullptr)};
  if (comm == nullptr) return {result, ""};
  const pkcommResult_t asked = pkcommCommGetAsyncError(comm, &result);
  if (asked != pkcommSuccess) return {asked, pkcommGetLastError(nullptr)};
  return {result, result == pkcommSuccess ? "" : pkcommGetLastError(comm)};
}

/// One rank inside a world.
class Rank {
 public:
  Rank(int own_rank, int all_ranks, pkcommComm_t communicator, pkcommStream_t own_stream, Failures& failures)
      : rank(own_rank), nranks(all_ranks), comm(communicator), stream(own_stream), failures_(failures) {}

  const int rank, nranks;
  pkcommComm_t comm;
  const pkcommStream_t stream;

  void fail(const std::string& text) { failures_.add("rank " + std::to_string(rank) + ": " + text); }
  bool expect(bool condition, const std::string& otherwise) {
    if (!condition) fail(otherwise);
    return condition;
  }
  /// The call succeeds.
  bool ok(pkcommResult_t result, const std::string& what) {
    return expect(result == pkcommSuccess,
                  what + ": " + pkcommGetErrorString(result) + ": " + pkcommGetLastError(nullptr));
  }
  /// The call fails as expected, and its text has `part` in it.
  void fails(pkcommResult_t result, pkcommResult_t expected, const std::string& part,
             const std::string& what) {
    ends({result, pkcommGetLastError(nullptr)}, expected, part, what);
  }
  /// The work on the stream succeeds.
  bool synchronize(const std::string& what) { return synchronize(stream, what); }
  bool synchronize(pkcommStream_t other, const std::string& what) {
    const Ending ending = finish(comm, other);
    return expect(ending.result == pkcommSuccess,
                  what + ": " + pkcommGetErrorString(ending.result) + ": " + ending.text);
  }
  /// The work behind `called`, the last call's result, fails as expected, and the text has `part` in it. The call itself
  /// fails where a peer has found the fault already.
  void fails_to_finish(pkcommResult_t called, pkcommResult_t expected, const std::string& part,
                       const std::string& what) {
    ends(called != pkcommSuccess ? Ending{called, pkcommGetLastError(nullptr)} : finish(comm, stream),
         expected, part, what);
  }
  /// The same rank with another stream.
  Rank with(pkcommStream_t other) const { return {rank, nranks, comm, other, failures_}; }

 private:
  void ends(const Ending& ending, pkcommResult_t expected, const std::string& part, const std::string& what) {
    expect(ending.result == expected, what + ": " + pkcommGetErrorString(ending.result) + " instead of " +
                                          pkcommGetErrorString(expected) + ": " + ending.text);
    expect(ending.text.find(part) != std::string::npos, what + ": '" + part + "' is not in: " + ending.text);
  }

  Failures& failures_;
};

inline pkcommConfig_t limited_config() {
  pkcommConfig_t config = PKCOMM_CONFIG_INITIALIZER;
  config.timeout_ms = kLimitMs;
  config.init_timeout_ms = kLimitMs;
  return config;
}

/// Runs `body` on `nranks` ranks; fails the test if any of them found something wrong.
inline void run_world(int nranks, const std::function<void(Rank&)>& body,
                      pkcommConfig_t config = limited_config()) {
  (void)device_count();  // asked before there are threads
  pkcommUniqueId id;
  REQUIRE(pkcommGetUniqueId(&id) == pkcommSuccess);
  Failures failures;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nranks; ++rank) {
    threads.emplace_back([&, rank] {
      use_device(config.device == PKCOMM_UNDEFINED ? device_of(rank) : config.device);
      pkcommComm_t comm = nullptr;
      if (pkcommCommInitRankConfig(&comm, nranks, id, rank, &config) != pkcommSuccess) {
        failures.add("rank " + std::to_string(rank) + ": init: " + pkcommGetLastError(nullptr));
        return;
      }
      pkcommStream_t stream = nullptr;
      if (pkcommStreamCreate(&stream) != pkcommSuccess) failures.add(pkcommGetLastError(nullptr));
      Rank self(rank, nranks, comm, stream, failures);
      body(self);
      if (self.comm != nullptr) self.ok(pkcommCommDestroy(self.comm), "destroy");
      self.ok(pkcommStreamDestroy(stream), "stream destroy");
    });
  }
  for (std::thread& thread : threads) thread.join();
  INFO(failures.text());
  CHECK(failures.text().empty());
}

}  // namespace pkcomm::test
