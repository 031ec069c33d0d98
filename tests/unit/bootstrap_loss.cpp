// Processes that die, leave, abort or stop, forked children, and strays.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <random>

#include "base/process.hpp"
#include "bootstrap/endpoint.hpp"
#include "bootstrap/process.hpp"
#include "bootstrap_support.hpp"
#include "support/catch.hpp"

using namespace pkcomm;
using namespace pkcomm::bootstrap;
using namespace pkcomm::bootstrap::test;
using pkcomm::test::contains_text;

namespace {

/// Three processes are connected and watch; then `victim` does its part in process 2. The others report how they
/// heard of it, and what a gather says.
std::string lose_one(int process, Processes::Shared& shared, const std::function<void(Membership&)>& victim) {
  auto joined = join(share_id(shared, process), 3, process);
  if (!joined.ok()) return text_of(joined.status());
  Membership& membership = *joined.value();
  std::atomic<int> lost{-1};
  const auto begin = std::chrono::steady_clock::now();
  const Status watching = membership.watch([&](int other, Departure how) {
    if (other == 2) lost = static_cast<int>(how);
  });
  if (!watching.ok()) return text_of(watching);
  Status status = check_gather(membership, process);
  if (!status.ok()) return text_of(status);
  if (process == 2) {
    victim(membership);
    membership.leave(process);
    return "";
  }
  status = check_gather(membership, process, 10'000);
  comes_true([&] { return lost >= 0; });
  const std::string text = std::to_string(lost) + " " + text_of(status);
  if (milliseconds_since(begin) > 5000) return "took too long: " + text;
  membership.leave(process);
  return text;
}

void send_from_stray(const pkcommUniqueId& unique_id, bool tcp, std::size_t bytes, bool keep,
                     std::vector<Connected>& kept) {
  const IdContent id = parse_unique_id(unique_id).value();
  Connected connected;
  if (tcp) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(id.port);
    std::memcpy(&address.sin_addr, id.address, 4);
    sockaddr_storage storage = {};
    std::memcpy(&storage, &address, sizeof(address));
    connected = connect_tcp(storage, sizeof(address), Deadline::after_ms(1000), nullptr);
  } else {
    connected = connect_unix(abstract_name(id.name));
  }
  std::mt19937_64 random(bytes);
  std::string text;
  while (text.size() < bytes) text += static_cast<char>(random());
  if (connected.fd && bytes > 0) (void)::send(connected.fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
  if (keep) kept.push_back(std::move(connected));
}

}  // namespace

TEST_CASE("a process that dies is noticed by all others (C19)", "[unit][bootstrap]") {
  Processes processes;
  processes.start(3, [](int process, Processes::Shared& shared) {
    return lose_one(process, shared, [](Membership&) { ::kill(::getpid(), SIGKILL); });
  });
  CHECK(processes.finish(2) == "signal 9");
  for (const int process : {0, 1}) {
    CHECK_THAT(processes.finish(process),
               contains_text("0 6 gather: rank 2 (pid ") && contains_text(") died"));
  }
}

TEST_CASE("a process that leaves or aborts is told from one that died", "[unit][bootstrap]") {
  const bool abort = GENERATE(false, true);
  Processes processes;
  processes.start(3, [&](int process, Processes::Shared& shared) {
    return lose_one(process, shared, [&](Membership& membership) {
      if (abort) membership.cancel();
    });
  });
  CHECK(processes.finish(2) == "");
  for (const int process : {0, 1}) {
    const std::string text = processes.finish(process);
    CHECK_THAT(text, contains_text(abort ? "1 6 gather: rank 2" : "2 6 gather: rank 2"));
    CHECK_THAT(text, contains_text(abort ? "aborted the communicator" : "left the communicator"));
  }
}

TEST_CASE("a process that stops is named by the deadline and does not harm those that resume it (C19)",
          "[unit][bootstrap]") {
  Processes processes;
  processes.start(2, [&](int process, Processes::Shared& shared) -> std::string {
    auto joined = join(share_id(shared, process), 2, process);
    if (!joined.ok()) return text_of(joined.status());
    if (process == 1) {
      shared.words[0] = 1;
      ::raise(SIGSTOP);
      const Status status = check_gather(*joined.value(), process, 2000);
      return status.ok() ? "a stale success" : "";
    }
    await_word(shared.words[0], 1);
    const Status status = check_gather(*joined.value(), process, 200);
    joined.value()->leave(process);
    if (check_gather(*joined.value(), process, 200).code() != pkcommTimeout) return "no lasting error";
    return text_of(status);
  });
  CHECK_THAT(processes.finish(0), contains_text("8 gather: rank 1 (pid ") && contains_text("within 200 ms"));
  ::kill(processes.pid(1), SIGCONT);
  CHECK(processes.finish(1) == "");
}

TEST_CASE("cancel ends an exchange with other processes at once", "[unit][bootstrap]") {
  Processes processes;
  processes.start(2, [&](int process, Processes::Shared& shared) -> std::string {
    auto joined = join(share_id(shared, process), 2, process);
    if (!joined.ok()) return text_of(joined.status());
    if (process == 1) {
      await_word(shared.words[0], 1);
      return "";
    }
    const MembershipPtr& membership = joined.value();
    std::thread canceller([&] { ::usleep(100'000), membership->cancel(); });
    const auto begin = std::chrono::steady_clock::now();
    const Status status = check_gather(*membership, process);
    canceller.join();
    shared.words[0] = 1;
    return status.code() == pkcommAborted && milliseconds_since(begin) < 1000 ? "" : text_of(status);
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("strays at the listener do no harm (C22)", "[unit][bootstrap]") {
  Processes processes;
  processes.start(4, [](int process, Processes::Shared& shared) -> std::string {
    const pkcommUniqueId id = share_id(shared, process);
    if (process == 3) {
      std::vector<Connected> kept;
      for (const bool tcp : {false, true}) {
        for (const std::size_t bytes : {0, 3, 8, 32, 392, 5000}) {
          send_from_stray(id, tcp, bytes, false, kept);
          send_from_stray(id, tcp, bytes, true, kept);
        }
        for (int i = 0; i < 100; ++i) send_from_stray(id, tcp, 0, true, kept);
      }
      const auto begin = std::chrono::steady_clock::now();
      const std::string text = text_of(whole_life(id, 4, process));
      return milliseconds_since(begin) < 5000 ? text : "took too long";
    }
    return text_of(whole_life(id, 4, process));
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("strays cannot take the last descriptors (C22)", "[unit][bootstrap]") {
  Processes processes;
  processes.start(3, [](int process, Processes::Shared& shared) -> std::string {
    if (process == 0) {
      const rlimit limit = {64, 64};
      ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    const pkcommUniqueId id = share_id(shared, process);
    if (process == 2) {
      std::vector<Connected> kept;
      for (int i = 0; i < 200; ++i) send_from_stray(id, i % 2 == 0, 0, true, kept);
      shared.words[0] = 1;
      return text_of(whole_life(id, 2, 1));
    }
    if (process == 1) return "";
    await_word(shared.words[0], 1);
    return text_of(whole_life(id, 2, 0));
  });
  CHECK(processes.finish_all() == "");
}

TEST_CASE("a forked child keeps none of its parent's connections (C29)", "[unit][bootstrap]") {
  Processes processes;
  processes.start(2, [](int process, Processes::Shared& shared) -> std::string {
    auto joined = join(share_id(shared, process), 2, process);
    if (!joined.ok()) return text_of(joined.status());
    Membership& membership = *joined.value();
    std::atomic<int> lost{-1};
    const Status watching = membership.watch([&](int, Departure how) { lost = static_cast<int>(how); });
    if (!watching.ok()) return text_of(watching);
    const std::uint64_t generation = process_generation();
    const Nonce nonce = process_nonce();
    const pid_t child = ::fork();
    if (child == 0) {
      for (int fd = 3; fd < 100; ++fd) {
        int type = 0;
        socklen_t bytes = sizeof(type);
        if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0) ::_exit(10);
      }
      membership.leave(process);  // of an inherited membership: does nothing
      if (process_generation() == generation) ::_exit(11);
      if (process_nonce() == nonce) ::_exit(12);
#ifndef __SANITIZE_THREAD__  // whose runtime allows no threads in such a child
      if (!whole_life(new_id(), 1, 0).ok()) ::_exit(13);
#endif
      shared.words[2 + process] = 1;
      ::pause();
      ::_exit(0);
    }
    int ended = 0;
    const auto child_ended = [&] { return ::waitpid(child, &ended, WNOHANG) == child; };
    while (shared.words[2 + process] == 0 && !child_ended()) ::usleep(500);
    if (shared.words[2 + process] == 0) return "child: " + std::to_string(WEXITSTATUS(ended));
    Status status = check_gather(membership, process);
    if (!status.ok()) return text_of(status);
    if (process == 0) {
      // Its end must be seen although its child lives on.
      shared.words[0] = child;
      ::kill(::getpid(), SIGKILL);
    }
    const bool seen = comes_true([&] { return lost >= 0; });
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::kill(shared.words[0], SIGKILL);
    membership.leave(process);
    return seen ? "" : "the parent's end was not seen";
  });
  CHECK(processes.finish(0) == "signal 9");
  CHECK(processes.finish(1) == "");
}

TEST_CASE("a process that exits in the middle of everything ends with its own code (C26)",
          "[unit][bootstrap]") {
  Processes processes;
  processes.start(2, [](int process, Processes::Shared& shared) -> std::string {
    auto joined = join(share_id(shared, process), 2, process);
    if (!joined.ok()) return text_of(joined.status());
    const Status watching = joined.value()->watch([](int, Departure) {});
    const pkcommUniqueId unused = new_id();
    (void)unused;
    (void)watching;
    ++shared.words[0];
    await_word(shared.words[0], 2);
    std::strcpy(shared.report[process].text, "");
    std::exit(0);
  });
  CHECK(processes.finish_all() == "");
}
