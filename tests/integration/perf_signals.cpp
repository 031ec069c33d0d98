// pkcomm-perf ends: at a signal, when a rank dies or stops, and leaves nothing behind. And what the library
// itself does about signals: nothing.
#include <atomic>
#include <filesystem>
#include <set>

#include "perf_program.hpp"
#include "pkcomm/pkcomm.h"

using namespace pkcomm::test;

namespace {

const std::string kEndless = "all_reduce -g 4 -b 1M -e 1M -n 100 -N 0 -c 0";

std::set<std::string> shared_memory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.insert(entry.path());
  return names;
}

std::atomic<int> handled{0};

}  // namespace

TEST_CASE("C45 a signal ends all processes within 3 s and leaves nothing", "[integration][perf][C45]") {
  enum class Whom { kGroup, kStarter, kRank2, kGroupTwice };
  struct Row {
    const char* what;
    Whom whom;
    int signal;
  };
  const auto row = GENERATE(values<Row>({
      {"SIGINT to the group", Whom::kGroup, SIGINT},
      {"SIGINT to the process that was started", Whom::kStarter, SIGINT},
      {"SIGINT to rank 2", Whom::kRank2, SIGINT},
      {"SIGINT to the group, twice", Whom::kGroupTwice, SIGINT},
      {"SIGTERM to the process that was started", Whom::kStarter, SIGTERM},
      {"SIGTERM to the group", Whom::kGroup, SIGTERM},
  }));
  CAPTURE(row.what);
  const auto before = shared_memory();
  PerfRun run(kEndless);
  REQUIRE(run.wait_for_row());
  REQUIRE(run.ranks().size() == 4);
  const pid_t group = -run.pid();
  switch (row.whom) {
    case Whom::kStarter:
      ::kill(run.pid(), row.signal);
      break;
    case Whom::kRank2:
      ::kill(run.ranks()[2], row.signal);
      break;
    case Whom::kGroupTwice:
      ::kill(group, row.signal);
      [[fallthrough]];
    case Whom::kGroup:
      ::kill(group, row.signal);
      break;
  }
  CHECK(run.wait(3) == 128 + row.signal);
  CHECK(run.all_gone());
  for (const std::string& name : shared_memory()) {
    CAPTURE(name);
    CHECK(before.count(name) == 1);
  }
}

TEST_CASE("C45 a rank that dies is named, and the others end", "[integration][perf][C45]") {
  PerfRun run(kEndless);
  REQUIRE(run.wait_for_row());
  const pid_t victim = run.ranks().at(1);
  ::kill(victim, SIGKILL);
  CHECK(run.wait(3) == 1);
  CHECK(run.all_gone());
  CHECK_THAT(run.err(), contains_text("rank 1 (pid " + std::to_string(victim) + ") died of signal 9"));
}

TEST_CASE("C45 the ranks end with the process that started them", "[integration][perf][C45]") {
  PerfRun run(kEndless);
  REQUIRE(run.wait_for_row());
  ::kill(run.pid(), SIGKILL);
  CHECK(run.wait(3) == -SIGKILL);
  CHECK(PerfRun::wait_until(3000, [&] { return run.all_gone(); }));
}

TEST_CASE("C45 a rank that stops runs into the time limit", "[integration][perf][C45]") {
  PerfRun run(kEndless + " -T 1");
  REQUIRE(run.wait_for_row());
  ::kill(run.ranks().at(3), SIGSTOP);
  CHECK(run.wait(20) == 1);
  CHECK(run.all_gone());
  CHECK_THAT(run.err(), contains_text("rank 3"));
}

TEST_CASE("C45 a reader that goes away ends the run in silence", "[integration][perf][C45]") {
  const std::string program = std::string(PKCOMM_TEST_PROGRAMS) + "/pkcomm-perf " + kEndless;
  const std::string command =
      "bash -c 'timeout 30 " + program + " | head -n 20 >/dev/null; exit ${PIPESTATUS[0]}'";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGPIPE);
}

TEST_CASE("C45 an application's signal handlers stay its own", "[integration][C45]") {
  struct sigaction before[NSIG] = {};
  struct sigaction mine {};
  mine.sa_handler = [](int) { ++handled; };
  struct sigaction old {};
  REQUIRE(sigaction(SIGINT, &mine, &old) == 0);
  for (int signal = 1; signal < NSIG; ++signal) (void)sigaction(signal, nullptr, &before[signal]);
  pkcommComm_t comms[2] = {};
  REQUIRE(pkcommCommInitAll(comms, 2, nullptr) == pkcommSuccess);
  for (int signal = 1; signal < NSIG; ++signal) {
    CAPTURE(signal);
    struct sigaction now {};
    (void)sigaction(signal, nullptr, &now);
    CHECK(now.sa_handler == before[signal].sa_handler);
    CHECK(now.sa_flags == before[signal].sa_flags);
  }
  const int earlier = handled;
  raise(SIGINT);
  CHECK(handled == earlier + 1);
  for (pkcommComm_t comm : comms) CHECK(pkcommCommDestroy(comm) == pkcommSuccess);
  REQUIRE(sigaction(SIGINT, &old, nullptr) == 0);
}
