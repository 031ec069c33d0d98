// Start-up, exchange and loss among forked processes. The test itself never starts a thread before it forks: all ids
// are made by the children.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>

#include "bootstrap_support.hpp"
#include "support/catch.hpp"

using namespace pkcomm;
using namespace pkcomm::bootstrap;
using namespace pkcomm::bootstrap::test;
using pkcomm::test::contains_text;

namespace {

/// Start-up and one gather with `processes` processes of `each` ranks; rank r lives in process r % processes.
std::string one_life(const pkcommUniqueId& id, int process, int processes, int each) {
  std::vector<int> ranks;
  for (int i = 0; i < each; ++i) ranks.push_back(process + i * processes);
  for (const Status& status :
       as_threads(ranks, [&](int rank) { return whole_life(id, processes * each, rank); })) {
    if (!status.ok()) return text_of(status);
  }
  return "";
}

Result<MembershipPtr> join_one(Processes::Shared& shared, int process, int nranks, int index = 0) {
  return join(share_id(shared, process, index), nranks, process);
}

int memory_file(int value) {
  const int fd = ::memfd_create("pkcomm-test", MFD_CLOEXEC);
  if (::pwrite(fd, &value, sizeof(value), 0) != sizeof(value)) return -1;
  return fd;
}

/// Everybody sends `bytes` bytes and a descriptor whose content names the sender.
Status check_exchange(Mesh& mesh, std::size_t bytes, int round) {
  const UniqueFd fd(memory_file(100 * round + mesh.process()));
  const std::vector<std::byte> mine(bytes + static_cast<std::size_t>(mesh.process()),
                                    static_cast<std::byte>(mesh.process() + round));
  std::vector<Mesh::Message> all;
  PK_TRY(mesh.exchange("test", mine, fd.get(), all, Deadline::after_ms(kPlentyMs)));
  for (int p = 0; p < mesh.processes(); ++p) {
    const Mesh::Message& message = all[static_cast<std::size_t>(p)];
    const std::vector<std::byte> expected(bytes + static_cast<std::size_t>(p),
                                          static_cast<std::byte>(p + round));
    if (message.bytes != expected) return {pkcommInternalError, "wrong bytes from " + mesh.name_of(p)};
    int value = -1;
    if (p == mesh.process()) continue;
    if (::pread(message.fd.get(), &value, sizeof(value), 0) != sizeof(value) || value != 100 * round + p) {
      return {pkcommInternalError, "wrong descriptor from " + mesh.name_of(p)};
    }
    if ((::fcntl(message.fd.get(), F_GETFD) & FD_CLOEXEC) == 0)
      return {pkcommInternalError, "not close-on-exec"};
  }
  return {};
}

}  // namespace

TEST_CASE("ranks that are processes, or threads of several, find each other", "[unit][bootstrap]") {
  struct Row {
    int processes;
    int each;
  };
  const auto row = GENERATE(values<Row>({{2, 1}, {4, 1}, {8, 1}, {3, 2}, {2, 8}, {4, 18}}));
  CAPTURE(row.processes, row.each);
  Processes processes;
  processes.start(row.processes, [&](int process, Processes::Shared& shared) {
    return one_life(share_id(shared, process), process, row.processes, row.each);
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("72 processes find each other", "[unit][bootstrap]") {
  Processes processes;
  const auto begin = std::chrono::steady_clock::now();
  processes.start(72, [](int process, Processes::Shared& shared) {
    return one_life(share_id(shared, process), process, 72, 1);
  });
  CHECK(processes.finish_all() == "");
  CHECK(milliseconds_since(begin) < 20'000);  // 0.3 s on two idle cores
}

TEST_CASE("the process that makes the id need not be a rank", "[unit][bootstrap]") {
  Processes processes;
  processes.start(3, [](int process, Processes::Shared& shared) -> std::string {
    const pkcommUniqueId id = share_id(shared, process);
    if (process > 0) {
      const std::string text = text_of(whole_life(id, 2, process - 1));
      ++shared.words[0];
      return text;
    }
    await_word(shared.words[0], 2);
    return comes_true([] { return threads_named("pkcomm-listen") == 0; })
               ? ""
               : "the listener's thread is still there";
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("messages and descriptors go from each process to each", "[unit][bootstrap]") {
  const std::size_t bytes = GENERATE(as<std::size_t>{}, 0, 1, 4096, (1 << 20) - 8);
  CAPTURE(bytes);
  Processes processes;
  processes.start(4, [&](int process, Processes::Shared& shared) -> std::string {
    auto membership = join_one(shared, process, 4);
    if (!membership.ok()) return text_of(membership.status());
    const int descriptors = open_descriptors();
    for (int round = 0; round < 3; ++round) {
      const Status status =
          membership.value()->together(process, "test", Deadline::after_ms(kPlentyMs),
                                       [&](Mesh& mesh) { return check_exchange(mesh, bytes, round); });
      if (!status.ok()) return text_of(status);
    }
    if (open_descriptors() != descriptors) return "descriptors were left open";
    membership.value()->leave(process);
    return "";
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("processes in different meetings, or one that refuses, all get one error and go on",
          "[unit][bootstrap]") {
  Processes processes;
  processes.start(3, [](int process, Processes::Shared& shared) -> std::string {
    auto joined = join_one(shared, process, 3);
    if (!joined.ok()) return text_of(joined.status());
    Membership& membership = *joined.value();
    const auto deadline = Deadline::after_ms(kPlentyMs);
    std::vector<Mesh::Message> all;
    const char* what = process == 1 ? "split" : "allocation";
    Status status = membership.together(
        process, what, deadline, [&](Mesh& mesh) { return mesh.exchange(what, {}, -1, all, deadline); });
    if (status.code() != pkcommInvalidUsage) return "different meetings: " + text_of(status);
    if (status.message().find("\"split\"") == std::string::npos) return status.message();
    status = membership.together(process, "vote", deadline, [&](Mesh& mesh) {
      if (process == 2)
        return mesh.refuse("vote", Status(pkcommOutOfMemory, "no room for 8 bytes"), deadline);
      return mesh.exchange("vote", {}, -1, all, deadline);
    });
    if (status.code() != pkcommOutOfMemory) return "refusal: " + text_of(status);
    if (status.message().find("no room for 8 bytes") == std::string::npos) return status.message();
    status = check_gather(membership, process);
    membership.leave(process);
    return text_of(status);
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("ranks missing in other processes are named when the time is over (C20)", "[unit][bootstrap]") {
  Processes processes;
  SECTION("rank 1 of 3 does not come; a fresh id works afterwards") {
    processes.start(3, [](int process, Processes::Shared& shared) -> std::string {
      const pkcommUniqueId id = share_id(shared, process);
      if (process != 1) {
        const Status status = join(id, 3, process, 300).status();
        if (text_of(status) != "8 start-up: rank 1 of 3 did not join within 300 ms") return text_of(status);
      }
      return one_life(share_id(shared, process, 1), process, 3, 1);
    });
    CHECK(processes.finish_all() == "");
  }
  SECTION("the process that made the id is gone") {
    processes.start(3, [](int process, Processes::Shared& shared) -> std::string {
      const pkcommUniqueId id = share_id(shared, process);
      if (process == 0) ::kill(::getpid(), SIGKILL);
      ::usleep(50'000);
      return text_of(join(id, 3, process, 300).status());
    });
    CHECK(processes.finish(0) == "signal 9");
    for (const int process : {1, 2}) {
      const std::string text = processes.finish(process);
      CHECK_THAT(text, contains_text("8 start-up: rank " + std::to_string(process) +
                                     " of 3 found no listener within"));
      CHECK_THAT(text, contains_text("rank 0's as a rule, is missing"));
    }
  }
  SECTION("the process that made the id dies while ranks wait") {
    processes.start(2, [](int process, Processes::Shared& shared) -> std::string {
      const pkcommUniqueId id = share_id(shared, process);
      if (process == 0) {
        await_word(shared.words[0], 1);
        ::usleep(500'000);
        ::kill(::getpid(), SIGKILL);
      }
      shared.words[0] = 1;
      return text_of(join(id, 3, process).status());
    });
    CHECK(processes.finish(0) == "signal 9");
    CHECK_THAT(processes.finish(1),
               contains_text("6 start-up: rank 1 of 3 lost the process that made the id"));
  }
  SECTION("a rank dies while the others wait") {
    processes.start(2, [](int process, Processes::Shared& shared) -> std::string {
      const pkcommUniqueId id = share_id(shared, process);
      if (process == 1) {
        std::thread([] { ::usleep(500'000), ::kill(::getpid(), SIGKILL); }).detach();
      }
      return text_of(join(id, 3, process).status());
    });
    CHECK_THAT(processes.finish(0), contains_text("6 start-up: rank 1 (pid "));
    CHECK(processes.finish(1) == "signal 9");
  }
}

TEST_CASE("processes that disagree all hear of it, late ones too", "[unit][bootstrap]") {
  Processes processes;
  SECTION("about the agreement") {
    processes.start(3, [](int process, Processes::Shared& shared) -> std::string {
      const pkcommUniqueId id = share_id(shared, process);
      if (process == 2) await_word(shared.words[0], 2);
      const std::string text = text_of(join(id, 3, process, kPlentyMs, process == 1 ? "64K" : "1M").status());
      ++shared.words[0];
      if (process == 0) await_word(shared.words[0], 3);  // the listener lives as long as its process
      return text;
    });
    for (const int process : {0, 1, 2}) {
      CHECK_THAT(processes.finish(process),
                 contains_text("5 start-up: rank ") && contains_text("64K") && contains_text("1M"));
    }
  }
  SECTION("one rank twice") {
    processes.start(2, [](int process, Processes::Shared& shared) -> std::string {
      const std::string text = text_of(join(share_id(shared, process), 2, 1).status());
      ++shared.words[0];
      await_word(shared.words[0], 2);
      return text;
    });
    for (const int process : {0, 1}) {
      CHECK_THAT(processes.finish(process), contains_text("5 start-up: rank 1 joined twice: as pid "));
    }
  }
  SECTION("about nranks") {
    processes.start(2, [](int process, Processes::Shared& shared) -> std::string {
      const std::string text = text_of(join(share_id(shared, process), 2 + process, process).status());
      ++shared.words[0];
      await_word(shared.words[0], 2);
      return text;
    });
    for (const int process : {0, 1}) {
      CHECK_THAT(processes.finish(process), contains_text("nranks 2") && contains_text("nranks 3"));
    }
  }
}

TEST_CASE("a second communicator from one id is refused in every process (C21)", "[unit][bootstrap]") {
  Processes processes;
  processes.start(2, [](int process, Processes::Shared& shared) -> std::string {
    const pkcommUniqueId id = share_id(shared, process);
    const std::string text = text_of(whole_life(id, 2, process));
    if (!text.empty()) return text;
    const Status again = join(id, 2, process, 500).status();
    return again.code() == pkcommInvalidUsage ? "" : text_of(again);
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("descriptors and threads of processes are back to where they were (C25)", "[unit][bootstrap]") {
  Processes processes;
  processes.start(2, [](int process, Processes::Shared& shared) -> std::string {
    int descriptors = 0;
    for (int round = 0; round < 50; ++round) {
      auto joined = join_one(shared, process, 2, round);
      if (!joined.ok()) return text_of(joined.status());
      const Status watching = joined.value()->watch([](int, Departure) {});
      if (!watching.ok()) return text_of(watching);
      const Status status = check_gather(*joined.value(), process);
      joined.value()->leave(process);
      if (!status.ok()) return text_of(status);
      if (round == 5) descriptors = open_descriptors();
    }
    if (open_descriptors() != descriptors) return std::to_string(open_descriptors()) + " descriptors";
    const auto gone = [] { return threads_named("pkcomm-listen") + threads_named("pkcomm-monitor") == 0; };
    return comes_true(gone) ? "" : "threads are left";
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("socket files replace abstract names in PKCOMM_RUNTIME_DIR and go away", "[unit][bootstrap]") {
  char directory[] = "/tmp/pkcomm-test-XXXXXX";
  REQUIRE(::mkdtemp(directory) != nullptr);
  ::setenv("PKCOMM_RUNTIME_DIR", directory, 1);
  {
    Processes killed;  // leaves its files behind
    killed.start(1, [](int process, Processes::Shared& shared) -> std::string {
      share_id(shared, process);
      ::kill(::getpid(), SIGKILL);
      return "";
    });
    CHECK(killed.finish(0) == "signal 9");
    CHECK(entries(directory) == 1);
  }
  Processes processes;
  processes.start(3, [](int process, Processes::Shared& shared) {
    return one_life(share_id(shared, process), process, 3, 2);
  });
  CHECK(processes.finish_all() == "");
  CHECK(entries(directory) == 0);
  ::setenv("PKCOMM_RUNTIME_DIR", "/nonexistent/directory", 1);
  CHECK(create_unique_id(1).status().code() == pkcommInvalidUsage);
  ::setenv("PKCOMM_RUNTIME_DIR", ("/tmp/" + std::string(100, 'd')).c_str(), 1);
  CHECK_THAT(create_unique_id(1).status().message(), contains_text("too long"));
  ::unsetenv("PKCOMM_RUNTIME_DIR");
  ::rmdir(directory);
}
