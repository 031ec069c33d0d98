// Start-up and meetings of ranks that are threads of one process.
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "bootstrap/rendezvous.hpp"
#include "bootstrap/rendezvous_client.hpp"
#include "bootstrap_support.hpp"
#include "support/catch.hpp"

using namespace pkcomm;
using namespace pkcomm::bootstrap;
using namespace pkcomm::bootstrap::test;
using pkcomm::test::contains_text;

namespace {

void check_all_ok(const std::vector<Status>& results) {
  for (const Status& status : results) CHECK(text_of(status) == "");
}

}  // namespace

TEST_CASE("ranks that are threads find each other", "[unit][bootstrap]") {
  const int nranks = GENERATE(1, 2, 8, 72);
  CAPTURE(nranks);
  const pkcommUniqueId id = new_id();
  std::set<Membership*> memberships;
  std::mutex mutex;
  check_all_ok(as_threads(first_ranks(nranks), [&](int rank) -> Status {
    PK_ASSIGN(const MembershipPtr membership, join(id, nranks, rank));
    PK_TRY(check_gather(*membership, rank));
    const bool right = membership->nranks() == nranks && membership->processes() == 1 &&
                       membership->process() == 0 && membership->local_ranks() == first_ranks(nranks) &&
                       membership->ranks()[static_cast<std::size_t>(rank)].pid == ::getpid();
    membership->leave(rank);
    const std::lock_guard lock(mutex);
    memberships.insert(membership.get());
    return right ? Status() : Status(pkcommInternalError, "wrong facts");
  }));
  CHECK(memberships.size() == 1);
}

TEST_CASE("one of the local ranks does the work of a meeting and all get its result", "[unit][bootstrap]") {
  const pkcommUniqueId id = new_id();
  std::atomic<int> runs{0};
  const auto results = as_threads(first_ranks(4), [&](int rank) -> Status {
    PK_ASSIGN(const MembershipPtr membership, join(id, 4, rank));
    const auto deadline = Deadline::after_ms(kPlentyMs);
    for (int round = 0; round < 200; ++round) {
      PK_TRY(membership->together(rank, "count", deadline, [&](Mesh&) { return ++runs, Status(); }));
    }
    const Status status = membership->together(rank, "fail", deadline, [&](Mesh& mesh) {
      std::vector<Mesh::Message> all;
      PK_TRY(mesh.exchange("fail", {}, -1, all, deadline));
      return Status(pkcommOutOfMemory, "no room");
    });
    PK_TRY(check_gather(*membership, rank));  // a failure of the work harms no later meeting
    membership->leave(rank);
    return status;
  });
  CHECK(runs == 200);
  for (const Status& status : results) CHECK(text_of(status) == "11 no room");
}

TEST_CASE("ranks that disagree all hear of it", "[unit][bootstrap]") {
  const pkcommUniqueId id = new_id();
  SECTION("about the agreement") {
    const auto results = as_threads(
        {0, 1, 2}, [&](int rank) { return join(id, 3, rank, kPlentyMs, rank == 1 ? "64K" : "1M").status(); });
    for (const Status& status : results) {
      CHECK(status.code() == pkcommInvalidUsage);
      CHECK_THAT(status.message(), contains_text("rank 1") && contains_text("64K") && contains_text("1M"));
    }
  }
  SECTION("about nranks") {
    const auto results = as_threads({0, 1}, [&](int rank) { return join(id, 2 + rank, rank).status(); });
    for (const Status& status : results) {
      CHECK(status.code() == pkcommInvalidUsage);
      CHECK_THAT(status.message(), contains_text("nranks 2") && contains_text("nranks 3"));
    }
  }
}

TEST_CASE("arguments of join are checked before anything else", "[unit][bootstrap]") {
  const pkcommUniqueId id = new_id();
  CHECK(join(id, 0, 0).status().code() == pkcommInvalidArgument);
  CHECK(join(id, 1025, 0).status().code() == pkcommInvalidArgument);
  CHECK(join(id, 2, 2).status().code() == pkcommInvalidArgument);
  CHECK(join(id, 2, -1).status().code() == pkcommInvalidArgument);
  CHECK(join(id, 1, 0, kPlentyMs, std::string(257, 'x')).status().code() == pkcommInvalidArgument);
  CHECK(join(pkcommUniqueId{}, 1, 0).status().code() == pkcommInvalidArgument);
  CHECK(text_of(whole_life(id, 1, 0)) == "");  // none of them has used the id up
}

TEST_CASE("the ranks that did not come are named when the time is over (C20)", "[unit][bootstrap]") {
  const pkcommUniqueId id = new_id();
  const auto begin = std::chrono::steady_clock::now();
  const auto results = as_threads({0, 2, 3}, [&](int rank) { return join(id, 5, rank, 200).status(); });
  CHECK(milliseconds_since(begin) < 1200);
  for (const Status& status : results) {
    CHECK(status.code() == pkcommTimeout);
    CHECK(status.message() == "start-up: ranks 1, 4 of 5 did not join within 200 ms");
  }
  // Who comes too late hears the same at once, and a fresh id works.
  CHECK(join(id, 5, 1).status().message() == "start-up: ranks 1, 4 of 5 did not join within 200 ms");
  CHECK(join(id, 5, 0).status().code() == pkcommInvalidUsage);
  const pkcommUniqueId fresh = new_id();
  check_all_ok(as_threads(first_ranks(5), [&](int rank) { return whole_life(fresh, 5, rank); }));
}

TEST_CASE("an id serves once (C21)", "[unit][bootstrap]") {
  const pkcommUniqueId id = new_id();
  SECTION("not again afterwards") {
    check_all_ok(as_threads({0, 1}, [&](int rank) { return whole_life(id, 2, rank); }));
    for (const int rank : {0, 1, 2}) {
      const Status status = join(id, 2 + rank, rank, 500).status();
      CHECK(status.code() == pkcommInvalidUsage);
      CHECK_THAT(status.message(), contains_text("already served"));
    }
  }
  SECTION("not twice at the same time") {
    std::atomic<int> served{0};
    std::atomic<int> refused{0};
    as_threads({0, 1, 0, 1}, [&](int rank) {
      const Status status = whole_life(id, 2, rank);
      if (status.ok()) ++served;
      if (status.code() == pkcommInvalidUsage) ++refused;
      return Status();
    });
    CHECK(served == 2);
    CHECK(refused == 2);
  }
  SECTION("not after a failure") {
    CHECK(join(id, 2, 0, 50).status().code() == pkcommTimeout);
    CHECK(join(id, 2, 0, 50).status().code() == pkcommInvalidUsage);
  }
}

TEST_CASE("an id that nobody uses gives its thread and descriptors back", "[unit][bootstrap]") {
  std::thread([] {}).join();  // with the first thread ThreadSanitizer starts one of its own, which stays
  const int descriptors = open_descriptors();
  const int threads = threads_alive();
  const auto id = create_unique_id(30);
  REQUIRE(id.ok());
  CHECK(open_descriptors() > descriptors);
  CHECK(comes_true([&] { return open_descriptors() == descriptors && threads_alive() == threads; }));
  CHECK(join(id.value(), 1, 0).status().code() == pkcommInvalidUsage);
}

TEST_CASE("a missing interface is an error that lists those found (C23)", "[unit][bootstrap]") {
  ::setenv("PKCOMM_SOCKET_IFNAME", "nosuch0", 1);
  const auto id = create_unique_id();
  ::unsetenv("PKCOMM_SOCKET_IFNAME");
  REQUIRE_FALSE(id.ok());
  CHECK(id.status().code() == pkcommInvalidUsage);
  CHECK_THAT(id.status().message(), contains_text("nosuch0") && contains_text("those up with an address: "));
}

TEST_CASE("a rank that cannot reach the Unix socket joins by TCP", "[unit][bootstrap]") {
  const pkcommUniqueId unique_id = new_id();
  IdContent id = parse_unique_id(unique_id).value();
  if (id.family == 0) return;  // a machine without any address
  id.name ^= 1;
  const auto hello = [&](int rank) {
    return make_hello(id.nonce, Nonce{{static_cast<std::uint64_t>(rank), 1}}, 2, rank, {false, "x"}, {});
  };
  const auto results = as_threads({0, 1}, [&](int rank) -> Status {
    const auto deadline = Deadline::after_ms(kPlentyMs);
    const auto rendezvous = rank == 0 ? Rendezvous::find(id.nonce) : nullptr;
    PK_ASSIGN(const Outcome outcome, rank == 0 ? rendezvous->join(hello(0), deadline, nullptr)
                                               : join_elsewhere(id, hello(1), deadline, nullptr));
    if (rendezvous) rendezvous->retire();
    const bool right = outcome.table && outcome.table->process_of_rank == std::vector<int>{0, 1};
    return right ? Status() : Status(pkcommInternalError, "no table");
  });
  check_all_ok(results);
}

TEST_CASE("a flag ends a start-up that waits", "[unit][bootstrap]") {
  const pkcommUniqueId id = new_id();
  std::atomic<bool> cancelled{false};
  const auto results = as_threads({0, 1, 9}, [&](int rank) {
    if (rank < 2) return join(id, 3, rank, kPlentyMs, "same", rank == 0 ? &cancelled : nullptr).status();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled = true;
    return Status();
  });
  CHECK(results[0].code() == pkcommAborted);
  CHECK(results[1].code() == pkcommRemoteError);
  CHECK_THAT(results[1].message(), contains_text("rank 0"));
}

TEST_CASE("a meeting ends for all by cancel, by a deadline, or by a rank that leaves", "[unit][bootstrap]") {
  const pkcommUniqueId id = new_id();
  std::atomic<int> joined{0};
  const int how = GENERATE(0, 1, 2);
  CAPTURE(how);
  const auto begin = std::chrono::steady_clock::now();
  const auto results = as_threads({0, 1, 2}, [&](int rank) -> Status {
    PK_ASSIGN(const MembershipPtr membership, join(id, 3, rank));
    ++joined;
    Status status;
    if (rank < 2) {
      status = check_gather(*membership, rank, how == 1 ? 100 : kPlentyMs);
    } else {
      while (joined < 3) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(how == 1 ? 200 : 50));
      if (how == 0) membership->cancel();
      if (how == 2) membership->leave(rank);
      status = check_gather(*membership, rank);
    }
    membership->leave(rank);
    return status;
  });
  CHECK(milliseconds_since(begin) < 10'000);
  const pkcommResult_t expected[] = {pkcommAborted, pkcommTimeout, pkcommRemoteError};
  for (const Status& status : results) CHECK(status.code() == expected[how]);
  if (how != 0) CHECK_THAT(results[0].message(), contains_text("rank 2"));
}

TEST_CASE("ranks that come for different things, or give different sizes, all hear of it",
          "[unit][bootstrap]") {
  const pkcommUniqueId id = new_id();
  std::vector<Status> sizes(3);
  const auto results = as_threads({0, 1, 2}, [&](int rank) -> Status {
    PK_ASSIGN(const MembershipPtr membership, join(id, 3, rank));
    const auto deadline = Deadline::after_ms(kPlentyMs);
    std::vector<std::byte> mine(rank == 1 ? 24 : 16);
    std::vector<std::byte> all(3 * mine.size());
    sizes[static_cast<std::size_t>(rank)] = membership->all_gather(rank, "sizes", mine, all, deadline);
    const Status status = membership->together(rank, rank == 2 ? "allocation" : "split", deadline,
                                               [](Mesh&) { return Status(); });
    PK_TRY(check_gather(*membership, rank));
    membership->leave(rank);
    return status;
  });
  for (const Status& status : results) {
    CHECK(status.code() == pkcommInvalidUsage);
    CHECK_THAT(status.message(), contains_text("\"split\"") && contains_text("\"allocation\""));
  }
  for (const Status& status : sizes) {
    CHECK(text_of(status) == "5 sizes: rank 0 gives 16 bytes, rank 1 gives 24");
  }
}

TEST_CASE("many threads start many communicators at once (C28)", "[unit][bootstrap]") {
  constexpr int kThreads = 8;
  constexpr int kCommunicators = 4;
  for (int round = 0; round < 5; ++round) {
    std::vector<pkcommUniqueId> ids;
    for (int i = 0; i < kCommunicators; ++i) ids.push_back(new_id());
    check_all_ok(as_threads(first_ranks(kThreads * kCommunicators), [&](int index) {
      return whole_life(ids[static_cast<std::size_t>(index % kCommunicators)], kThreads,
                        index / kCommunicators);
    }));
  }
}

TEST_CASE("descriptors and threads are back to where they were after each round (C25)", "[unit][bootstrap]") {
  check_all_ok(as_threads({0, 1}, [id = new_id()](int rank) { return whole_life(id, 2, rank); }));
  const int descriptors = open_descriptors();
  const int threads = threads_alive();
  for (int round = 0; round < 50; ++round) {
    const pkcommUniqueId id = new_id();
    check_all_ok(as_threads({0, 1, 2}, [&](int rank) { return whole_life(id, 3, rank); }));
  }
  CHECK(open_descriptors() == descriptors);
  CHECK(comes_true([&] { return threads_alive() == threads; }));
}
