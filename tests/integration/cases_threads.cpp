// Several communicators at once, many threads, forked children, and more ranks than cores.
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "crew.hpp"

using namespace pkcomm::test;

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;

void expect_equal(Rank& self, const char* what, int round, int got, int wanted) {
  if (got != wanted) {
    self.fail(std::string(what) + ", round " + std::to_string(round) + ": " + std::to_string(got) +
              " instead of " + std::to_string(wanted));
  }
}

/// Two communicators over the same two ranks, on two streams; one rank enqueues A then B, the other B then A.
void cross(Failures& failures, const pkcommUniqueId& a, const pkcommUniqueId& b, int rank, int rounds) {
  run_rank(2, a, rank, failures, [&](Rank& self) {
    run_rank(2, b, rank, failures, [&](Rank& other) {
      for (int round = 0; round < rounds; ++round) {
        Visible<int> small{rank + 1, 0}, large{10 * (rank + 1), 0};
        const auto reduce_a = [&] {
          self.ok(pkcommAllReduce(&small[0], &small[1], 1, pkcommInt32, pkcommSum, self.comm, self.stream),
                  "A");
        };
        const auto reduce_b = [&] {
          other.ok(pkcommAllReduce(&large[0], &large[1], 1, pkcommInt32, pkcommSum, other.comm, other.stream),
                   "B");
        };
        rank == 0 ? (reduce_a(), reduce_b()) : (reduce_b(), reduce_a());
        // Synchronised in the order of the calls: each rank waits first for what the other comes to last.
        const bool good = rank == 0 ? self.synchronize("A") && other.synchronize("B")
                                    : other.synchronize("B") && self.synchronize("A");
        if (!good) return;
        expect_equal(self, "A", round, small[1], 3);
        expect_equal(self, "B", round, large[1], 30);
      }
    });
  });
}

}  // namespace

TEST_CASE("C27 two communicators in opposite order do not wait for each other", "[integration][C27]") {
  constexpr int kRounds = 10000;
  SECTION("ranks are processes") {
    if (!a_device_each(2)) return;
    Shared<Ids> ids;
    Crew crew;
    crew.start(2, [&](int process, Failures& failures) {
      if (process == 0) ids->make(0), ids->make(1);
      cross(failures, ids->wait(0), ids->wait(1), process, kRounds);
    });
    CHECK(crew.wait_all(100000) == "");
  }
  SECTION("ranks are threads") {
    pkcommUniqueId a, b;
    REQUIRE(pkcommGetUniqueId(&a) == pkcommSuccess);
    REQUIRE(pkcommGetUniqueId(&b) == pkcommSuccess);
    Failures failures;
    std::thread other([&] { cross(failures, a, b, 1, kRounds); });
    cross(failures, a, b, 0, kRounds);
    other.join();
    CHECK(failures.text() == "");
  }
}

TEST_CASE("C27 sixteen communicators on sixteen threads", "[integration][C27]") {
  if (!a_device_each(2)) return;
  constexpr int kCommunicators = 16, kRounds = 300;
  Shared<Ids> ids;
  Crew crew;
  crew.start(2, [&](int process, Failures& failures) {
    for (int i = 0; process == 0 && i < kCommunicators; ++i) ids->make(i);
    std::vector<std::thread> threads;
    for (int i = 0; i < kCommunicators; ++i) {
      threads.emplace_back([&, i] {
        run_rank(2, ids->wait(i), process, failures, [&](Rank& self) {
          for (int round = 0; round < kRounds; ++round) {
            if (!expect_sum(self, (process + 1) * (i + 1) + round, 3 * (i + 1) + 2 * round)) return;
          }
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  CHECK(crew.wait_all(100000) == "");
}

namespace {

/// `count` all_reduces of rank + 1 in one go.
void reduce_often(Rank& self, int count, int wanted, const char* what) {
  const Visible<int> value{self.rank + 1};
  Visible<int> sums(static_cast<std::size_t>(count));
  for (int& sum : sums) {
    if (!self.ok(pkcommAllReduce(value.data(), &sum, 1, pkcommInt32, pkcommSum, self.comm, self.stream),
                 what))
      return;
  }
  if (!self.synchronize(what)) return;
  for (int i = 0; i < count; ++i) expect_equal(self, what, i, sums[static_cast<std::size_t>(i)], wanted);
}

/// One of eight ranks: four communicators of all, made in an order of its own, and a half of each.
void make_and_split(Failures& failures, const pkcommUniqueId* ids, int rank, pkcommStream_t stream) {
  constexpr int kRanks = 8, kEach = 4;
  const pkcommConfig_t config = limited_config();
  pkcommComm_t all[kEach] = {}, halves[kEach] = {};
  Rank self(rank, kRanks, nullptr, stream, failures);
  self.ok(pkcommGroupStart(), "group");
  for (int i = 0; i < kEach; ++i) {
    const int which = (i + rank) % kEach;
    self.ok(pkcommCommInitRankConfig(&all[which], kRanks, ids[which], rank, &config), "init");
  }
  if (!self.ok(pkcommGroupEnd(), "init in a group")) return;
  self.ok(pkcommGroupStart(), "group");
  for (int i = 0; i < kEach; ++i) {
    const int which = (i + rank) % kEach;
    self.ok(pkcommCommSplit(all[which], rank % 2, rank, &halves[which], nullptr), "split");
  }
  if (!self.ok(pkcommGroupEnd(), "split in a group")) return;
  for (int i = 0; i < kEach; ++i) {
    Rank whole(rank, kRanks, all[i], stream, failures);
    reduce_often(whole, 100, 36, "all ranks");
    int count = 0, place = -1;
    self.ok(pkcommCommCount(halves[i], &count), "count");
    self.ok(pkcommCommUserRank(halves[i], &place), "rank");
    self.expect(count == 4 && place == rank / 2, "the half has other ranks");
    Rank half(rank, 4, halves[i], stream, failures);
    reduce_often(half, 100, rank % 2 == 0 ? 16 : 20, "half");
  }
  for (int i = 0; i < kEach; ++i) {
    self.ok(pkcommCommDestroy(all[i]), "destroy");
    self.ok(pkcommCommDestroy(halves[i]), "destroy of the half");
  }
}

}  // namespace

TEST_CASE("C28 many threads make and split communicators at once", "[integration][C28]") {
  constexpr int kRanks = 8;
  for (int repeat = 0; repeat < 20; ++repeat) {
    pkcommUniqueId ids[4];
    for (pkcommUniqueId& id : ids) REQUIRE(pkcommGetUniqueId(&id) == pkcommSuccess);
    Failures failures;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        use_device(device_of(rank));
        pkcommStream_t stream = nullptr;
        if (pkcommStreamCreate(&stream) != pkcommSuccess) return failures.add(pkcommGetLastError(nullptr));
        make_and_split(failures, ids, rank, stream);
        if (pkcommStreamDestroy(stream) != pkcommSuccess) failures.add(pkcommGetLastError(nullptr));
      });
    }
    for (std::thread& thread : threads) thread.join();
    CAPTURE(repeat);
    REQUIRE(failures.text() == "");
  }
}

namespace {

std::set<std::string> descriptors() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry.path(), error);
    if (!error && !target.string().starts_with("/proc/"))
      found.insert(entry.path().filename().string() + " " + target.string());
  }
  return found;
}

/// What a program that this process runs inherits, as `ls -l` tells it in descriptors 3 and up; 0 to 2 may be anything.
std::string inherited_by_program(bool through_fork) {
  char path[] = "/tmp/pkcomm-fds-XXXXXX";
  ::close(::mkstemp(path));
  const std::string command = std::string("for f in /proc/self/fd/*; do readlink $f; done > ") + path;
  const char* const arguments[] = {"/bin/sh", "-c", command.c_str(), nullptr};
  pid_t child = 0;
  if (through_fork) {
    child = ::fork();
    if (child == 0) {
      ::execv(arguments[0], const_cast<char**>(arguments));
      ::_exit(127);
    }
  } else {
    ::posix_spawn(&child, arguments[0], nullptr, nullptr, const_cast<char**>(arguments), environ);
  }
  ::waitpid(child, nullptr, 0);
  std::string found;
  std::ifstream list(path);
  for (std::string line; std::getline(list, line);) {
    if (line.find("pkcomm") != std::string::npos && line != path) found += line + "\n";
    if (line.starts_with("socket:") || line.starts_with("anon_inode:")) found += line + "\n";
  }
  ::unlink(path);
  return found;
}

/// What the children of the two ranks do.
enum class Child { kExitsAtOnce, kExitsThroughHandlers, kUsesHandle, kMakesOwn, kRuns };

int play_child(Child part, Rank& parent, const pkcommUniqueId& id) {
  Failures failures;
  Rank self(parent.rank, parent.nranks, parent.comm, parent.stream, failures);
  int value = 1, sum = 0;
  switch (part) {
    case Child::kExitsAtOnce:
      ::_exit(0);
    case Child::kExitsThroughHandlers:
      std::exit(0);
    case Child::kUsesHandle: {
      const auto begin = Clock::now();
      self.fails(pkcommAllReduce(&value, &sum, 1, pkcommInt32, pkcommSum, self.comm, nullptr),
                 pkcommInvalidUsage, "fork", "all_reduce");
      self.expect(pkcommStreamSynchronize(self.stream) == pkcommInvalidArgument, "the stream lives");
      self.fails(pkcommCommDestroy(self.comm), pkcommInvalidUsage, "fork", "destroy");
      self.fails(pkcommCommAbort(self.comm), pkcommInvalidUsage, "fork", "abort");
      self.expect(seconds_since(begin) < 1, "it took long");
      break;
    }
    case Child::kMakesOwn: {
      pkcommUniqueId own;
      self.ok(pkcommGetUniqueId(&own), "id");
      run_rank(1, own, 0, failures, sum_of_ranks);         // alone
      run_rank(2, id, self.rank, failures, sum_of_ranks);  // with the other rank's child
      break;
    }
    case Child::kRuns:
      break;
  }
  if (!failures.text().empty()) std::fputs(failures.text().c_str(), stderr);
  return failures.text().empty() ? 0 : 1;
}

}  // namespace

TEST_CASE("C29 forked children leave the parents' communicator alone", "[integration][C29]") {
  const auto part = GENERATE(Child::kExitsAtOnce, Child::kExitsThroughHandlers, Child::kUsesHandle,
                             Child::kMakesOwn, Child::kRuns);
  if (!only_on_host("CUDA itself does not survive a fork")) return;
  if (kSanitized && part == Child::kMakesOwn) return;  // the child would hang in the sanitizer's allocator
  CAPTURE(static_cast<int>(part));
  Shared<Ids> ids;
  Crew crew(Crew::kCaptured);
  crew.start(2, [&](int process, Failures& failures) {
    const std::set<std::string> before = descriptors();
    if (process == 0) ids->make(0);
    run_rank(2, ids->wait(0), process, failures, [&](Rank& self) {
      sum_of_ranks(self);
      if (part == Child::kRuns) {
        for (const bool through_fork : {true, false}) {
          const std::string found = inherited_by_program(through_fork);
          self.expect(found.empty(), "a program inherits " + found);
        }
        for (const std::string& name : descriptors()) {
          const int fd = std::stoi(name);
          if (!before.contains(name))
            self.expect((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, name + " is not close-on-exec");
        }
      }
      if (part == Child::kMakesOwn && self.rank == 0) ids->make(1);
      const pkcommUniqueId id = part == Child::kMakesOwn ? ids->wait(1) : pkcommUniqueId{};
      std::fflush(nullptr);
      const pid_t child = ::fork();
      if (child == 0) ::_exit(play_child(part, self, id));
      int status = -1;
      const bool ended = comes_true([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 30000);
      if (!self.expect(ended, "the child hangs")) ::kill(child, SIGKILL);
      self.expect(status == 0, "the child ended with status " + std::to_string(status));
      for (int round = 0; round < 100; ++round)
        expect_sum(self, self.rank + round, 1 + 2 * round, "after the child");
    });
  });
  for (int process = 0; process < 2; ++process) {
    const Crew::Ending ending = crew.wait(process);
    CAPTURE(process);
    CHECK(ending.failures == "");
    CHECK(ending.code == 0);
    if (!kSanitized) CHECK(ending.err == "");
  }
}

namespace {

/// Seconds of processor time that a process has used.
double processor_seconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  long user = 0, system = 0;
  // Field 14 and 15; the name before the last ')' may hold anything.
  if (std::sscanf(text.c_str() + text.rfind(')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
                  &user, &system) != 2) {
    return -1;
  }
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void pin_to_two_cores() {
  cpu_set_t allowed, two;
  CPU_ZERO(&two);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core) {
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &two);
  }
  ::sched_setaffinity(0, sizeof two, &two);
}

}  // namespace

TEST_CASE("C44 many ranks on few cores keep moving, and those that wait sleep", "[integration][C44]") {
  if (!only_on_host("ranks wait on the GPU, not on cores")) return;
  constexpr int kRanks = 32, kRounds = 1000;
  Shared<Ids> ids;
  struct Progress {
    std::atomic<int> ready{0}, reduced{0};
  };
  Shared<Progress> progress;
  Crew crew;
  crew.start(kRanks, [&](int process, Failures& failures) {
    pin_to_two_cores();
    if (process == 0) ids->make();
    run_rank(kRanks, ids->wait(), process, failures, [&](Rank& self) {
      std::vector<float> in(256), out(256);
      for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i % 7) + static_cast<float>(self.rank);
      sum_of_ranks(self);
      ++progress->ready;
      for (int round = 0; round < kRounds; ++round) {
        self.ok(pkcommAllReduce(in.data(), out.data(), in.size(), pkcommFloat32, pkcommSum, self.comm,
                                self.stream),
                "");
        if (!self.synchronize("all_reduce")) return;
        for (std::size_t i = 0; i < in.size(); ++i) {
          const float wanted = kRanks * static_cast<float>(i % 7) + kRanks * (kRanks - 1) / 2;
          if (!self.expect(out[i] == wanted, "a wrong sum")) return;
        }
      }
      ++progress->reduced;
      // Rank 0 comes 5 s late.
      comes_true([&] { return progress->reduced == kRanks; });
      if (self.rank == 0) sleep_ms(5000);
      sum_of_ranks(self);
    });
  });
  REQUIRE(comes_true([&] { return progress->ready == kRanks; }));
  const auto begin = Clock::now();
  REQUIRE(comes_true([&] { return progress->reduced == kRanks; }));
  CHECK(seconds_since(begin) < 20);
  sleep_ms(1000);
  std::vector<double> used;
  for (int rank = 0; rank < kRanks; ++rank) used.push_back(processor_seconds(crew[rank].pid()));
  const auto from = Clock::now();
  sleep_ms(3500);
  const double limit = 0.1 * seconds_since(from);
  for (int rank = 0; rank < kRanks; ++rank) {
    CAPTURE(rank);
    CHECK(processor_seconds(crew[rank].pid()) - used[static_cast<std::size_t>(rank)] < limit);
  }
  CHECK(crew.wait_all() == "");
}
