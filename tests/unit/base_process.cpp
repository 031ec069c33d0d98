// Objects of a process and its children, and the library's threads.
#include <signal.h>

#include <vector>

#include "base/process.hpp"
#include "support/catch.hpp"
#include "support/processes.hpp"

using namespace pkcomm;
using namespace pkcomm::test;

namespace {

struct Counter {
  std::atomic<int> starts{0};
};
PerProcess<Counter> counter;
Counter& started() {
  return counter.get([](Counter& self) { ++self.starts; });
}

}  // namespace

TEST_CASE("an object of the process is one for all threads, and started once", "[unit][base]") {
  constexpr int kThreads = 8;
  std::vector<Counter*> seen(kThreads);
  std::vector<std::thread> threads;
  for (Counter*& mine : seen) threads.emplace_back([&mine] { mine = &started(); });
  for (std::thread& thread : threads) thread.join();
  for (const Counter* other : seen) CHECK(other == seen.front());
  CHECK(started().starts == 1);
}

TEST_CASE("a forked child begins with a new object and another generation", "[unit][base]") {
  Counter* const parents = &started();
  const std::uint64_t generation = process_generation();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool fresh = process_generation() != generation && &started() != parents && started().starts == 1;
    test::keep_coverage();
    ::_exit(fresh ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(&started() == parents);
  CHECK(process_generation() == generation);
}

TEST_CASE("the library's threads take no signals and leave the caller's mask", "[unit][base]") {
  sigset_t before, after, inside;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  auto thread = start_thread("pkcomm-test", [&inside] { ::pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  REQUIRE(thread.ok());
  thread.value().join();
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1}) {
    CAPTURE(signal);
    CHECK(::sigismember(&inside, signal) == 1);
    CHECK(::sigismember(&after, signal) == ::sigismember(&before, signal));
  }
}
