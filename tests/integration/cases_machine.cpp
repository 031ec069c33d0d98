// What a machine or container may refuse: /dev/shm, rights over other processes, multicast, a device of one's own; and
// what killed processes leave.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "crew.hpp"
#include "support/memory.hpp"

using namespace pkcomm::test;

TEST_CASE("C33 a small or read-only /dev/shm does not matter", "[integration][C33]") {
  constexpr int kRanks = 8;
  if (!a_device_each(kRanks)) return;
  const char* const options = GENERATE("size=1m", "size=64m", "ro");
  CAPTURE(options);
  Shared<std::atomic<int>> refused;
  Crew outer;
  outer.start(1, [&](int, Failures& failures) {
    const bool read_only = std::string(options) == "ro";
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/dev/shm", "tmpfs", read_only ? MS_RDONLY : 0, read_only ? "" : options) != 0) {
      refused->store(errno);
      return;
    }
    Shared<Ids> ids;
    Crew ranks;
    ranks.start(kRanks, [&](int rank, Failures& found) {
      if (rank == 0) ids->make();
      run_rank(kRanks, ids->wait(), rank, found, [](Rank& self) { expect_float_sums(self, 8 << 20); });
    });
    if (const std::string text = ranks.wait_all(55000); !text.empty()) failures.add(text);
    if (entries("/dev/shm") != 0) failures.add("something lies in /dev/shm");
  });
  CHECK(outer.wait_all() == "");
  if (*refused == EPERM) WARN("skipped, for want of the right to mount");
  CHECK((*refused == 0 || *refused == EPERM));
}

namespace {

/// Four ranks that are killed, all at once, when all of them have reduced, or `after_us` after their start.
void start_and_kill(std::int64_t after_us) {
  Shared<Ids> ids;
  Shared<std::atomic<int>> reduced;
  Crew crew(Crew::kCaptured);  // survivors may say who died
  crew.start(4, [&](int process, Failures& failures) {
    if (process == 0) ids->make();
    run_rank(4, ids->wait(), process, failures, [&](Rank& self) {
      sum_of_ranks(self);
      ++*reduced;
      ::pause();
    });
  });
  if (after_us < 0) {
    REQUIRE(comes_true([&] { return *reduced == 4; }));
  } else {
    ::usleep(static_cast<useconds_t>(after_us));
  }
  for (int process = 0; process < 4; ++process) crew[process].send(SIGKILL);
  for (int process = 0; process < 4; ++process) {
    const int code = crew.wait(process).code;
    // One that saw another die during init may have ended by itself.
    CHECK((code == 128 + SIGKILL || (after_us >= 0 && code == 0)));
  }
}

std::string whole_run(int nranks) {
  Shared<Ids> ids;
  Crew crew;
  crew.start(nranks, [&](int process, Failures& failures) {
    if (process == 0) ids->make();
    run_rank(nranks, ids->wait(), process, failures, sum_of_ranks);
  });
  return crew.wait_all();
}

}  // namespace

TEST_CASE("C34 killed processes leave nothing that hinders a later start", "[integration][C34]") {
  if (!a_device_each(4)) return;
  const int before = entries("/dev/shm");
  const int rounds = on_cuda() ? 10 : 50;  // a process with a GPU takes a second to start
  SECTION("after a collective") {
    for (int round = 0; round < rounds; ++round) start_and_kill(-1);
  }
  SECTION("in the middle of init") {
    std::mt19937 random(1);
    for (int round = 0; round < rounds; ++round) start_and_kill(static_cast<std::int64_t>(random() % 20000));
  }
  CHECK(entries("/dev/shm") == before);
  CHECK(whole_run(4) == "");
  CHECK(entries("/dev/shm") == before);
}

TEST_CASE("C34 socket files of killed processes are reclaimed by a later start", "[integration][C34]") {
  if (!a_device_each(4)) return;
  char directory[] = "/tmp/pkcomm-test-XXXXXX";
  REQUIRE(::mkdtemp(directory) != nullptr);
  {
    const Environment environment(std::map<std::string, std::string>{{"PKCOMM_RUNTIME_DIR", directory}});
    std::mt19937 random(1);
    for (int round = 0; round < 20; ++round)
      start_and_kill(round < 5 ? -1 : static_cast<std::int64_t>(random() % 20000));
    CHECK(whole_run(4) == "");
  }
  std::string left;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    left += entry.path().filename().string() + "\n";
  CHECK(left == "");
  std::filesystem::remove_all(directory);
}

namespace {

/// From now on these system calls fail with `error`: all by which one process reaches into another, which is also what
/// Yama's ptrace_scope guards.
bool refuse_reaching_into_processes(int error) {
  constexpr std::array<unsigned, 5> kCalls = {SYS_pidfd_open, SYS_pidfd_getfd, SYS_ptrace,
                                              SYS_process_vm_readv, SYS_process_vm_writev};
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCalls[i], static_cast<std::uint8_t>(kCalls.size() - i), 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
  sock_fprog whole = {static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0) != 0) return false;
  return ::syscall(SYS_pidfd_open, ::getpid(), 0) == -1 && errno == error;
}

}  // namespace

TEST_CASE("C35 ranks need no rights over each other's processes", "[integration][C35]") {
  if (!a_device_each(3)) return;
  const int error = GENERATE(EPERM, ENOSYS);
  CAPTURE(error);
  Shared<Ids> ids;
  Shared<std::atomic<int>> refused;
  Crew crew;
  crew.start(3, [&](int process, Failures& failures) {
    if (!refuse_reaching_into_processes(error)) {
      refused->store(1);
      return;
    }
    if (process == 0) ids->make();
    run_rank(3, ids->wait(), process, failures, [](Rank& self) {
      expect_float_sums(self, 1 << 18);
      void* memory = nullptr;
      self.ok(pkcommHeapAlloc(self.comm, 1 << 20, &memory), "heap");
    });
  });
  CHECK(crew.wait_all() == "");
  if (*refused != 0) WARN("skipped: this machine takes no filter of system calls");
}

TEST_CASE("C35 ranks may live in different process namespaces", "[integration][C35]") {
  if (!a_device_each(2)) return;
  Shared<Ids> ids;
  Shared<std::atomic<int>> refused;
  Crew crew;
  crew.start(2, [&](int rank, Failures& failures) {
    if (::unshare(CLONE_NEWPID) != 0) {
      refused->store(1);
      return;
    }
    Crew inner;  // the next child is process 1 of the namespace, in both
    inner.start(1, [&](int, Failures& found) {
      if (::getpid() != 1) found.add("not in a namespace of its own");
      if (rank == 0) ids->make();
      run_rank(2, ids->wait(), rank, found, [](Rank& self) { expect_float_sums(self, 1 << 18); });
    });
    if (const std::string text = inner.wait_all(); !text.empty()) failures.add(text);
  });
  CHECK(crew.wait_all() == "");
  if (*refused != 0) WARN("skipped, for want of the right to make a process namespace");
}

TEST_CASE("C36 without multicast everything else works, and asking for it is refused with the reason",
          "[integration][C36]") {
  struct Row {
    const char* value;
    bool starts;
    const char* complaint;  // a part of the one line, or null: no line
  };
  const auto row = GENERATE(values<Row>({
      {nullptr, true, nullptr},
      {"auto", true, nullptr},
      {"off", true, nullptr},
      {"OFF", true, nullptr},
      {"require", false, nullptr},
      {"on", true, "allowed auto, off, require"},
      {"", true, "allowed auto, off, require"},
  }));
  CAPTURE(row.value == nullptr ? "unset" : row.value);
  Crew crew(Crew::kCaptured);
  crew.start(1, [&](int, Failures& failures) {
    if (row.value != nullptr) ::setenv("PKCOMM_MULTICAST", row.value, 1);
    if (!row.starts) {
      pkcommUniqueId id;
      pkcommGetUniqueId(&id);
      const auto refuses = [&](int rank) {
        use_device(device_of(rank));
        pkcommComm_t comm = nullptr;
        const pkcommResult_t result = pkcommCommInitRank(&comm, 2, id, rank);
        const std::string text = words(result);
        if (result != pkcommUnsupported) failures.add("init gave " + text);
        if (text.find("PKCOMM_MULTICAST") == std::string::npos) failures.add("no reason in: " + text);
        if (comm != nullptr) failures.add("a handle was left");
      };
      std::thread other([&] { refuses(1); });
      refuses(0);
      other.join();
      return;
    }
    run_threads(2, failures, [](Rank& self) {
      pkcommCommProperties_t properties = {};
      properties.size = sizeof properties;
      self.ok(pkcommCommGetProperties(self.comm, &properties), "properties");
      self.expect(properties.multicast == 0, "multicast is on");
      self.expect(properties.multicast_reason[0] != '\0', "no reason is given");
      int* memory = nullptr;
      self.ok(pkcommHeapAlloc(self.comm, 4096, reinterpret_cast<void**>(&memory)), "heap");
      void* multicast = nullptr;
      self.fails(pkcommHeapMulticastPointer(self.comm, memory, &multicast), pkcommUnsupported,
                 properties.multicast_reason, "multicast pointer");
      self.expect(multicast == nullptr, "a pointer was given");
      // Direct access stays.
      write_at(self, memory, Visible<int>{100 + self.rank});
      sum_of_ranks(self);
      int* peer = nullptr;
      self.ok(pkcommHeapPeerPointer(self.comm, memory, 1 - self.rank, reinterpret_cast<void**>(&peer)),
              "peer pointer");
      self.expect(peer != nullptr && read_at<int>(self, peer) == 101 - self.rank,
                  "the peer's memory holds something else");
      expect_float_sums(self, 100000);
      // In place, on symmetric memory.
      self.ok(pkcommAllReduce(memory + 1, memory + 1, 512, pkcommInt32, pkcommSum, self.comm, self.stream),
              "symmetric");
      self.synchronize("symmetric");
    });
  });
  const Crew::Ending ending = crew.wait(0);
  CHECK(ending.failures == "");
  CHECK(ending.code == 0);
  CHECK(ending.out == "");
  if (row.complaint == nullptr) {
    CHECK(ending.err == "");
  } else {
    CHECK(std::count(ending.err.begin(), ending.err.end(), '\n') == 1);
    CHECK_THAT(ending.err, contains_text("PKCOMM_MULTICAST"));
    CHECK_THAT(ending.err, contains_text(row.complaint));
  }
}

namespace {

void reduce_on_device_zero(Rank& self) {
  int device = -1;
  self.ok(pkcommCommDevice(self.comm, &device), "device");
  self.expect(device == 0, "the device is " + std::to_string(device));
  sum_of_ranks(self);
  expect_float_sums(self, 100000);
  // Both ranks have the same default stream.
  Visible<int> x{self.rank + 1, 0};
  self.ok(pkcommAllReduce(&x[0], &x[1], 1, pkcommInt32, pkcommSum, self.comm, nullptr), "default stream");
  self.synchronize(nullptr, "default stream");
  self.expect(x[1] == 3, "the sum is " + std::to_string(x[1]));
}

}  // namespace

TEST_CASE("C38 ranks may share a device", "[integration][C38]") {
  pkcommConfig_t config = limited_config();
  config.device = 0;
  SECTION("as processes") {
    if (!only_on_host("work of two processes takes turns on a GPU")) return;
    Shared<Ids> ids;
    Crew crew;
    crew.start(2, [&](int process, Failures& failures) {
      if (process == 0) ids->make();
      run_rank(2, ids->wait(), process, failures, reduce_on_device_zero, config);
    });
    CHECK(crew.wait_all() == "");
  }
  SECTION("as threads") {
    run_world(
        2,
        [](Rank& self) {
          int device = -1;
          self.ok(pkcommCommDevice(self.comm, &device), "device");
          self.expect(device == 0, "the device is " + std::to_string(device));
          sum_of_ranks(self);
          expect_float_sums(self, 100000);
        },
        config);
  }
  SECTION("made in one call") {
    const int devices[] = {0, 0};
    use_device(0);
    pkcommComm_t comms[2] = {};
    REQUIRE(pkcommCommInitAll(comms, 2, devices) == pkcommSuccess);
    pkcommStream_t streams[2] = {};
    Visible<int> in{1, 2}, out{0, 0};
    for (pkcommStream_t& stream : streams) REQUIRE(pkcommStreamCreate(&stream) == pkcommSuccess);
    REQUIRE(pkcommGroupStart() == pkcommSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      CHECK(pkcommAllReduce(&in[i], &out[i], 1, pkcommInt32, pkcommSum, comms[rank], streams[rank]) ==
            pkcommSuccess);
    }
    REQUIRE(pkcommGroupEnd() == pkcommSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      int device = -1;
      CHECK(finish(comms[rank], streams[rank]).result == pkcommSuccess);
      CHECK(out[static_cast<std::size_t>(rank)] == 3);
      CHECK(pkcommCommDevice(comms[rank], &device) == pkcommSuccess);
      CHECK(device == 0);
      CHECK(pkcommCommDestroy(comms[rank]) == pkcommSuccess);
      CHECK(pkcommStreamDestroy(streams[rank]) == pkcommSuccess);
    }
  }
}
