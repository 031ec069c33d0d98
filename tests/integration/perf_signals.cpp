// pkcomm-perf ends: at a signal, when a rank dies or stops, and leaves nothing behind. And what the library
// itself does about signals: nothing.
#include <atomic>
#include <filesystem>
#include <set>

#include "perf_program.hpp"
#include "pkcomm/pkcomm.h"
#include "support/platform.hpp"

using namespace pkcomm::test;

namespace {

const std::string kEndless = "all_reduce -g 4 -b 256K -e 256K -n 10 -N 0 -c 0";

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
  // The library's deadline names the rank that stopped; the tool's own, which passes at about the same time, all that
  // have not finished.
  CHECK_THAT(run.err(), contains_text("rank 3") || contains_text("unfinished ranks: 0, 1, 2, 3"));
}

TEST_CASE("C45 a reader that goes away ends the run in silence", "[integration][perf][C45]") {
  const std::string program = program_path("pkcomm-perf") + " " + kEndless;
  const std::string command =
      "bash -c 'timeout 30 " + program + " | head -n 20 >/dev/null; exit ${PIPESTATUS[0]}'";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGPIPE);
}

namespace {

// In a process of its own, as communicators make threads. Returns which step was wrong, or 0.
int keep_handlers() {
  struct sigaction mine {};
  mine.sa_handler = [](int) { ++handled; };
  if (sigaction(SIGINT, &mine, nullptr) != 0) return 1;
  struct sigaction before[NSIG] = {};
  for (int signal = 1; signal < NSIG; ++signal) (void)sigaction(signal, nullptr, &before[signal]);
  pkcommComm_t comms[2] = {};
  if (pkcommCommInitAll(comms, 2, devices_of(2).data()) != pkcommSuccess) return 2;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now {};
    (void)sigaction(signal, nullptr, &now);
    if (now.sa_handler != before[signal].sa_handler || now.sa_flags != before[signal].sa_flags)
      return 100 + signal;
  }
  raise(SIGINT);
  if (handled != 1) return 3;
  for (pkcommComm_t comm : comms) {
    if (pkcommCommDestroy(comm) != pkcommSuccess) return 4;
  }
  return 0;
}

}  // namespace

TEST_CASE("C45 an application's signal handlers stay its own", "[integration][C45]") {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) ::_exit(keep_handlers());
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
