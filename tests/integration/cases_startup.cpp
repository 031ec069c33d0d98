// Start-up: ranks that never come, ids that are used twice, strays at the listener, odd networks and host names.
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "crew.hpp"

using namespace pkcomm::test;

namespace {

using Clock = std::chrono::steady_clock;

pkcommConfig_t config_with_limit(std::int64_t init_ms) {
  pkcommConfig_t config = limited_config();
  config.init_timeout_ms = init_ms;
  return config;
}

/// Init must end in a timeout within 6 s whose text names the missing rank, and leave no handle.
void expect_missing(Failures& failures, const pkcommUniqueId& id, int rank, const std::string& missing) {
  use_device(device_of(rank));
  const pkcommConfig_t config = config_with_limit(5000);
  auto comm = reinterpret_cast<pkcommComm_t>(std::uintptr_t{16});
  const auto begin = Clock::now();
  const pkcommResult_t result = pkcommCommInitRankConfig(&comm, 3, id, rank, &config);
  const double seconds = seconds_since(begin);
  const std::string text = pkcommGetLastError(nullptr);
  if (result != pkcommTimeout) failures.add("no timeout but " + words(result));
  if (seconds > 6) failures.add("it took " + std::to_string(seconds) + " s");
  if (text.find(missing) == std::string::npos) failures.add("'" + missing + "' is not in: " + text);
  if (comm != nullptr) failures.add("a handle was left");
  int count = 0;
  if (pkcommCommCount(comm, &count) != pkcommInvalidArgument) failures.add("the handle is usable");
}

}  // namespace

TEST_CASE("C20 a rank that never comes is named when the deadline passes", "[integration][C20]") {
  if (!a_device_each(3)) return;
  Shared<Ids> ids;
  Shared<std::atomic<bool>> gone;
  Crew crew;
  // Process 3 only makes an id and is killed.
  crew.start(4, [&](int process, Failures& failures) {
    if (process == 3) {
      ids->make(1);
      ::pause();
    }
    if (process == 0) ids->make(0);
    if (process != 1) expect_missing(failures, ids->wait(0), process, "rank 1");
    comes_true([&] { return gone->load(); });
    if (process != 0) expect_missing(failures, ids->wait(1), process, "rank 0");
    if (process == 2) ids->make(2);
    run_rank(3, ids->wait(2), process, failures, sum_of_ranks);
  });
  ids->wait(1);
  crew[3].send(SIGKILL);
  CHECK(crew.wait(3).code == 128 + SIGKILL);
  *gone = true;
  CHECK(crew.wait_all() == ("process 3: did not report\nprocess 3 ended with code 137\n"));
}

TEST_CASE("C21 an id serves once", "[integration][C21]") {
  if (!a_device_each(2)) return;
  Shared<Ids> ids;
  Crew crew;

  SECTION("a second communicator from it, later, is refused") {
    crew.start(2, [&](int process, Failures& failures) {
      if (process == 0) ids->make();
      const pkcommUniqueId id = ids->wait();
      run_rank(2, id, process, failures, sum_of_ranks);
      const pkcommConfig_t config = config_with_limit(5000);
      pkcommComm_t comm = nullptr;
      const auto begin = Clock::now();
      const pkcommResult_t result = pkcommCommInitRankConfig(&comm, 2, id, process, &config);
      if (result != pkcommInvalidUsage) failures.add("the second init gave " + words(result));
      if (seconds_since(begin) > 6)
        failures.add("the second init took " + std::to_string(seconds_since(begin)));
      if (comm != nullptr) failures.add("a handle was left");
    });
    CHECK(crew.wait_all() == "");
  }

  SECTION("two communicators from it at once are not crossed") {
    const bool together = GENERATE(true, false);
    CAPTURE(together);
    Shared<std::atomic<int>> made;
    crew.start(2, [&](int process, Failures& failures) {
      if (process == 0) ids->make();
      const pkcommUniqueId id = ids->wait();
      std::vector<std::thread> threads;
      for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&, i] {
          use_device(device_of(process));
          if (i == 1 && !together) sleep_ms(20);
          const pkcommConfig_t config = config_with_limit(5000);
          pkcommComm_t comm = nullptr;
          const auto begin = Clock::now();
          const pkcommResult_t result = pkcommCommInitRankConfig(&comm, 2, id, process, &config);
          if (result != pkcommSuccess && result != pkcommInvalidUsage)
            failures.add("init gave " + words(result));
          if (seconds_since(begin) > 6)
            failures.add("init took " + std::to_string(seconds_since(begin)) + " s");
          if (result != pkcommSuccess) return;
          made->fetch_add(1);
          pkcommStream_t stream = nullptr;
          pkcommStreamCreate(&stream);
          Rank self(process, 2, comm, stream, failures);
          sum_of_ranks(self);
          self.ok(pkcommCommDestroy(comm), "destroy");
          self.ok(pkcommStreamDestroy(stream), "stream destroy");
        });
      }
      for (std::thread& thread : threads) thread.join();
      if (process == 0) ids->make(1);
      run_rank(2, ids->wait(1), process, failures, sum_of_ranks);
    });
    CHECK(crew.wait_all() == "");
    const int count = *made;
    CHECK((count == 0 || count == 2));
  }

  SECTION("what is no id is refused") {
    std::mt19937 random(1);
    for (int round = 0; round < 20; ++round) {
      pkcommUniqueId id = {};
      if (round > 0) {
        for (char& c : id.internal) c = static_cast<char>(random());
      }
      pkcommComm_t comm = nullptr;
      CHECK(pkcommCommInitRank(&comm, 2, id, 0) == pkcommInvalidArgument);
      CHECK(comm == nullptr);
    }
    // One bit of a good one.
    pkcommUniqueId id;
    REQUIRE(pkcommGetUniqueId(&id) == pkcommSuccess);
    for (const std::size_t byte : {0U, 20U, 40U, 70U}) {
      pkcommUniqueId damaged = id;
      damaged.internal[byte] = static_cast<char>(damaged.internal[byte] ^ 4);
      pkcommComm_t comm = nullptr;
      CHECK(pkcommCommInitRank(&comm, 2, damaged, 0) == pkcommInvalidArgument);
    }
  }
}

namespace {

/// Ports at which this process listens by TCP: sockets of /proc/self/fd that /proc/self/net/tcp shows as listening.
std::vector<sockaddr_in> listening() {
  std::set<std::string> inodes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  std::vector<sockaddr_in> found;
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    unsigned address = 0, port = 0, state = 0;
    char inode[32] = {};
    if (std::sscanf(line.c_str(), "%*d: %x:%x %*x:%*x %x %*s %*s %*s %*s %*s %31s", &address, &port, &state,
                    inode) != 4) {
      continue;
    }
    if (state != 0x0A || !inodes.contains(inode)) continue;
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = address;
    where.sin_port = htons(static_cast<std::uint16_t>(port));
    found.push_back(where);
  }
  return found;
}

int connect_stray(const sockaddr_in& where) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  (void)::connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where);
  return fd;
}

}  // namespace

TEST_CASE("C22 strays at the listener change nothing", "[integration][C22]") {
  if (!a_device_each(4)) return;
  struct Place {
    SharedId id;
    sockaddr_in where;
    std::atomic<int> known{0};
  };
  Shared<Place> place;
  Crew crew(Crew::kCaptured);
  Crew::Body rank = [&](int process, Failures& failures) {
    if (process == 0) {
      place->id.make();
      const auto ports = listening();
      if (ports.size() == 1) place->where = ports.front();
      place->known = ports.size() == 1 ? 1 : -1;
    }
    const pkcommUniqueId id = place->id.wait();
    if (process == 3) sleep_ms(3000);
    use_device(device_of(process));  // which takes its time on CUDA
    const auto begin = Clock::now();
    run_rank(4, id, process, failures, sum_of_ranks);
    const double limit = process == 3 ? 5 : 8;  // 5 s after the last has come, 3 s after the others
    if (seconds_since(begin) > limit) failures.add("it took " + std::to_string(seconds_since(begin)) + " s");
  };
  crew.start(4, rank);
  REQUIRE(comes_true([&] { return place->known != 0; }));
  if (place->known < 0) WARN("no listener by TCP over IPv4 on this machine: there is nothing to stray to");
  std::vector<int> open;
  if (place->known == 1) {
    ::close(connect_stray(place->where));
    const int three = connect_stray(place->where);
    CHECK(::send(three, "abc", 3, MSG_NOSIGNAL) == 3);
    ::close(three);
    open.push_back(connect_stray(place->where));
    CHECK(::send(open.back(), "\x93\x01\xfe\x77\x42\xb0\x0c\xd5", 8, MSG_NOSIGNAL) == 8);
    for (int i = 0; i < 201; ++i) open.push_back(connect_stray(place->where));  // and stay silent
  }
  for (int process = 0; process < 4; ++process) {
    const Crew::Ending ending = crew.wait(process);
    CAPTURE(process, ending.err);
    CHECK(ending.failures == "");
    CHECK(ending.code == 0);
    CHECK(ending.out == "");
    CHECK(std::count(ending.err.begin(), ending.err.end(), '\n') <= (process == 0 ? 1 : 0));
  }
  for (const int fd : open) ::close(fd);
}

namespace {

bool set_loopback(bool up, bool with_ipv4) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = up ? IFF_UP : 0;
  bool good = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  if (up && !with_ipv4) {
    request = {};
    std::strcpy(request.ifr_name, "lo");
    sockaddr_in none = {};
    none.sin_family = AF_INET;
    std::memcpy(&request.ifr_addr, &none, sizeof none);
    good = good && ::ioctl(fd, SIOCSIFADDR, &request) == 0;
  }
  ::close(fd);
  return good;
}

bool name_host(const char* name) {
  return ::unshare(CLONE_NEWUTS) == 0 && ::sethostname(name, std::strlen(name)) == 0;
}

/// Puts a file of this text over /etc/hosts, in a mount namespace of its own.
bool write_hosts(const char* text) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return false;
  char path[] = "/tmp/pkcomm-hosts-XXXXXX";
  const int fd = ::mkstemp(path);
  const bool good =
      ::write(fd, text, std::strlen(text)) > 0 && ::mount(path, "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
  ::close(fd);
  ::unlink(path);
  return good;
}

bool always() { return true; }

}  // namespace

TEST_CASE("C23 ranks of one machine meet whatever its network and names are", "[integration][C23]") {
  if (!a_device_each(2)) return;
  struct Row {
    const char* why;
    bool (*surroundings)();  // of both ranks
    bool (*own)(int rank);   // of each rank
  };
  const auto nothing = [](int) { return true; };
  const auto row = GENERATE_COPY(values<Row>({
      {"no interface is up", [] { return ::unshare(CLONE_NEWNET) == 0 && set_loopback(false, true); },
       nothing},
      {"loopback alone", [] { return ::unshare(CLONE_NEWNET) == 0 && set_loopback(true, true); }, nothing},
      {"no IPv4", [] { return ::unshare(CLONE_NEWNET) == 0 && set_loopback(true, false); }, nothing},
      {"a host name that nobody resolves", [] { return name_host("no-such-host.invalid"); }, nothing},
      {"/etc/hosts maps the host name to 127.0.1.1",
       [] { return name_host("odd-host") && write_hosts("127.0.0.1 localhost\n127.0.1.1 odd-host\n"); },
       nothing},
      {"different host names", always, [](int rank) { return name_host(rank == 0 ? "a.x" : "b.x"); }},
  }));
  CAPTURE(row.why);
  Shared<std::atomic<int>> refused;
  Crew outer;
  outer.start(1, [&](int, Failures& failures) {
    if (!row.surroundings()) {
      refused->store(errno == EPERM ? 1 : 2);
      return;
    }
    Shared<Ids> ids;
    Crew ranks;
    ranks.start(2, [&](int rank, Failures& found) {
      if (!row.own(rank)) {
        refused->store(errno == EPERM ? 1 : 2);
        return;
      }
      if (rank == 0) ids->make();
      run_rank(2, ids->wait(), rank, found, sum_of_ranks);
    });
    if (const std::string text = ranks.wait_all(30000); !text.empty() && *refused == 0) failures.add(text);
  });
  CHECK(outer.wait_all() == "");
  if (*refused == 1) WARN("skipped, for want of the right to do it: " << row.why);
  CHECK(*refused != 2);
}

TEST_CASE("C23 a variable that names a missing interface is an error that lists those found",
          "[integration][C23]") {
  const Environment environment(std::map<std::string, std::string>{{"PKCOMM_SOCKET_IFNAME", "nosuch0"}});
  pkcommUniqueId id;
  CHECK(pkcommGetUniqueId(&id) == pkcommInvalidUsage);
  const std::string text = pkcommGetLastError(nullptr);
  CHECK_THAT(text, contains_text("nosuch0"));
  CHECK_THAT(text, contains_text("lo (127.0.0.1)"));
}

TEST_CASE("C23 ranks in different network namespaces meet through PKCOMM_RUNTIME_DIR", "[integration][C23]") {
  if (!a_device_each(2)) return;
  char directory[] = "/tmp/pkcomm-test-XXXXXX";
  REQUIRE(::mkdtemp(directory) != nullptr);
  const Environment environment(std::map<std::string, std::string>{{"PKCOMM_RUNTIME_DIR", directory}});
  Shared<Ids> ids;
  Shared<std::atomic<int>> refused;
  Crew crew;
  crew.start(2, [&](int rank, Failures& failures) {
    if (::unshare(CLONE_NEWNET) != 0) {
      refused->store(1);
      return;
    }
    if (rank == 0) ids->make();
    run_rank(2, ids->wait(), rank, failures, sum_of_ranks);
  });
  CHECK(crew.wait_all() == "");
  if (*refused == 1) WARN("skipped, for want of the right to make a network namespace");
  CHECK(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}
