// The rules of a rendezvous and the choice of its interface, without a socket.
#include <netinet/in.h>

#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/interfaces.hpp"
#include "bootstrap/roster.hpp"
#include "support/catch.hpp"

using namespace pkcomm;
using namespace pkcomm::bootstrap;
using pkcomm::test::contains_text;

namespace {

Hello hello(int nranks, int rank, std::uint64_t process, const std::string& agreement = "a",
            std::int64_t limit_ms = 0) {
  Hello result = make_hello(Nonce{{1, 1}}, Nonce{{process, 0}}, nranks, rank, {false, "x"},
                            std::as_bytes(std::span(agreement)));
  result.pid = static_cast<std::int64_t>(100 + process);
  seal(result, limit_ms, limit_ms);
  return result;
}

Interface interface(const char* name, int family, bool loopback = false, const char* prefix = "") {
  Interface result;
  result.name = name;
  result.loopback = loopback;
  result.address.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    std::memcpy(&address.sin6_addr, prefix, std::strlen(prefix));
    std::memcpy(&result.address, &address, sizeof(address));
  }
  return result;
}

}  // namespace

TEST_CASE("a roster that is full gives a table in the order of the ranks", "[unit][bootstrap]") {
  Roster roster;
  roster.add(hello(4, 3, 2));
  roster.add(hello(4, 1, 1));
  roster.add(hello(4, 0, 2));
  CHECK_FALSE(roster.ended());
  roster.add(hello(4, 2, 1));
  REQUIRE(roster.served());
  CHECK(roster.outcome().table->process_of_rank == std::vector<int>{0, 1, 1, 0});
  CHECK(roster.outcome().table->name_of(0) == "ranks 0, 3 (pid 102)");
}

TEST_CASE("ranks that disagree end a roster with both values", "[unit][bootstrap]") {
  Roster roster;
  roster.add(hello(3, 0, 1));
  SECTION("nranks") {
    roster.add(hello(2, 1, 2));
    REQUIRE(roster.ended());
    CHECK(roster.outcome().failure->code == pkcommInvalidUsage);
    CHECK(roster.outcome().failure->text ==
          "start-up: rank 0 (pid 101) has nranks 3, rank 1 (pid 102) has nranks 2");
    CHECK_FALSE(roster.all_came());
  }
  SECTION("one rank twice") {
    roster.add(hello(3, 0, 2));
    REQUIRE(roster.ended());
    CHECK(roster.outcome().failure->text ==
          "start-up: rank 0 joined twice: as pid 101 (nranks 3) and as pid 102 (nranks 3)");
  }
  SECTION("agreement") {
    roster.add(hello(3, 2, 2, "b"));
    REQUIRE(roster.outcome().disagreement.has_value());
    CHECK(roster.outcome().disagreement->ranks[1] == 2);
    roster.add(hello(3, 1, 3));
    CHECK(roster.all_came());
    CHECK(roster.outcome().disagreement.has_value());
  }
  SECTION("version") {
    roster.add_other_version(9);
    CHECK_THAT(roster.outcome().failure->text, contains_text("protocol 1 where the id was made, 9"));
  }
  SECTION("a rank that goes") {
    roster.lost(0);
    CHECK(roster.outcome().failure->code == pkcommRemoteError);
    CHECK_THAT(roster.outcome().failure->text, contains_text("rank 0 (pid 101)"));
  }
}

TEST_CASE("the first deadline to pass ends a roster and names the missing ranks", "[unit][bootstrap]") {
  Roster roster;
  roster.add(hello(8, 0, 1));
  roster.add(hello(8, 2, 2, "a", 5));
  for (const int rank : {3, 4, 6, 7}) roster.add(hello(8, rank, 3, "a", 60'000));
  roster.expire();
  CHECK_FALSE(roster.ended());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  roster.expire();
  REQUIRE(roster.ended());
  CHECK(roster.outcome().failure->code == pkcommTimeout);
  CHECK(roster.outcome().failure->text == "start-up: ranks 1, 5 of 8 did not join within 5 ms");
}

TEST_CASE("the interface follows NCCL's rules", "[unit][bootstrap]") {
  const std::vector<Interface> all = {
      interface("lo", AF_INET, true),
      interface("docker0", AF_INET),
      interface("ens1", AF_INET6, false, "\xfe\x80"),
      interface("ens1", AF_INET6, false, "\x20\x01"),
      interface("ens1", AF_INET),
      interface("ens10", AF_INET),
      interface("ib0", AF_INET6, false, "\x20\x01"),
  };
  struct Row {
    const char* rule;
    const char* name;  // null: an error
    int family;
  };
  for (const Row& row : std::vector<Row>{{"", "ens1", AF_INET},
                                         {"ens", "ens1", AF_INET},
                                         {"=ens10", "ens10", AF_INET},
                                         {"ib,ens10", "ens10", AF_INET},
                                         {"ib", "ib0", AF_INET6},
                                         {"lo", "lo", AF_INET},
                                         {"^ens", "ib0", AF_INET6},
                                         {"^=ens1", "ens10", AF_INET},
                                         {"^ens,ib", "docker0", AF_INET},
                                         {"=en", nullptr, 0},
                                         {"wlan0", nullptr, 0},
                                         {"^lo,docker,ens,ib", nullptr, 0}}) {
    CAPTURE(row.rule);
    const auto chosen = choose_interface(all, row.rule);
    if (row.name == nullptr) {
      REQUIRE_FALSE(chosen.ok());
      CHECK(chosen.status().code() == pkcommInvalidUsage);
      CHECK_THAT(chosen.status().message(), contains_text("lo (0.0.0.0), docker0 (0.0.0.0), ens1 (fe80::)"));
    } else {
      REQUIRE(chosen.ok());
      CHECK(chosen.value()->name == row.name);
      CHECK(chosen.value()->address.ss_family == row.family);
    }
  }
  CHECK_FALSE(choose_interface({}, "").value().has_value());
  CHECK_FALSE(choose_interface({}, "eth0").ok());
  CHECK(choose_interface({interface("lo", AF_INET, true)}, "").value()->name == "lo");
}
