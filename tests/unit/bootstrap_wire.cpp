// The words of start-up as pure functions: no byte sequence may be taken for what it is not.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/unique_id.hpp"
#include "bootstrap/wire.hpp"
#include "support/catch.hpp"

using namespace pkcomm;
using namespace pkcomm::bootstrap;

namespace {

const Nonce kNonce{{0x1111111111111111, 0x2222222222222222}};

std::vector<std::byte> hello_bytes(const std::function<void(Hello&)>& change = {}) {
  const std::string agreement = "version 1";
  Hello hello =
      make_hello(kNonce, Nonce{{3, 4}}, 8, 5, {false, "00abc"}, std::as_bytes(std::span(agreement)));
  if (change) change(hello);
  if (hello.remaining_ms == 0) seal(hello, 5000, 4000);
  hello.checksum = checksum(&hello, offsetof(Hello, checksum));
  const auto* begin = reinterpret_cast<const std::byte*>(&hello);
  return {begin, begin + sizeof(hello)};
}

HelloState parse(std::span<const std::byte> bytes, Hello& hello) { return parse_hello(bytes, kNonce, hello); }

}  // namespace

TEST_CASE("a hello is read as it was written", "[unit][bootstrap]") {
  Hello hello = {};
  REQUIRE(parse(hello_bytes(), hello) == HelloState::kGood);
  CHECK(hello.rank == 5);
  CHECK(hello.nranks == 8);
  CHECK(hello.unix_name() == UnixName{false, "00abc"});
  CHECK(hello.limit_ms == 5000);
  CHECK(hello.remaining_ms == 4000);
  CHECK(hello.agreement_span().size() == 9);
}

TEST_CASE("a hello with a field out of range is foreign", "[unit][bootstrap]") {
  struct Row {
    const char* why;
    std::function<void(Hello&)> change;
  };
  const std::vector<Row> rows = {
      {"magic", [](Hello& h) { h.magic ^= 1; }},
      {"nonce", [](Hello& h) { h.nonce.words[1] ^= 1; }},
      {"no ranks", [](Hello& h) { h.nranks = 0; }},
      {"too many ranks", [](Hello& h) { h.nranks = kMaxRanks + 1; }},
      {"negative rank", [](Hello& h) { h.rank = -1; }},
      {"rank beyond nranks", [](Hello& h) { h.rank = 8; }},
      {"no name", [](Hello& h) { h.name_bytes = 0; }},
      {"name too long", [](Hello& h) { h.name_bytes = kMaxNameBytes + 1; }},
      {"agreement too long", [](Hello& h) { h.agreement_bytes = kMaxAgreementBytes + 1; }},
      {"another size", [](Hello& h) { h.bytes -= 8; }},
      {"kind of name", [](Hello& h) { h.name_is_file = 2; }},
      {"more time left than there was", [](Hello& h) { h.limit_ms = 5, h.remaining_ms = 6; }},
      {"negative limit", [](Hello& h) { h.limit_ms = -5, h.remaining_ms = -6; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    Hello hello = {};
    CHECK(parse(hello_bytes(row.change), hello) == HelloState::kForeign);
  }
}

TEST_CASE("a hello of another version is known by its prefix alone", "[unit][bootstrap]") {
  auto bytes = hello_bytes([](Hello& h) { h.version = 7; });
  Hello hello = {};
  CHECK(parse(bytes, hello) == HelloState::kOtherVersion);
  CHECK(hello.version == 7);
  CHECK(parse(std::span(bytes).first(32), hello) == HelloState::kOtherVersion);
  CHECK(parse(std::span(bytes).first(31), hello) == HelloState::kIncomplete);
}

TEST_CASE("every beginning of a hello is incomplete, and a longer one is foreign", "[unit][bootstrap]") {
  auto bytes = hello_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Hello hello = {};
    CAPTURE(size);
    REQUIRE(parse(std::span(bytes).first(size), hello) == HelloState::kIncomplete);
  }
  bytes.push_back(std::byte{0});
  Hello hello = {};
  CHECK(parse(bytes, hello) == HelloState::kForeign);
}

TEST_CASE("a hello with any one bit changed is not good", "[unit][bootstrap]") {
  const auto bytes = hello_bytes();
  int good = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto changed = bytes;
    changed[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    Hello hello = {};
    if (parse(changed, hello) == HelloState::kGood) ++good;
  }
  CHECK(good == 0);
}

TEST_CASE("random bytes are no hello", "[unit][bootstrap]") {
  std::mt19937_64 random(20);
  const auto model = hello_bytes();
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(random() % (2 * sizeof(Hello)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    // Half of them begin as a hello does, so that what follows is looked at.
    if (round % 2 == 0) std::copy_n(model.begin(), std::min<std::size_t>(bytes.size(), 32), bytes.begin());
    Hello hello = {};
    const HelloState state = parse(bytes, hello);
    if (state == HelloState::kGood) FAIL("round " << round);
    if (state == HelloState::kIncomplete && bytes.size() >= sizeof(Hello)) FAIL("round " << round);
  }
}

TEST_CASE("an outcome survives the wire, and no part or damage of it passes", "[unit][bootstrap]") {
  Outcome table;
  table.table.emplace();
  table.table->processes = {{10, 7, {false, "0001"}, {0, 2}}, {11, 7, {true, "pkcomm-x.sock"}, {1}}};
  table.table->process_of_rank = {0, 1, 0};
  Outcome failure;
  failure.failure = {pkcommTimeout, "ranks 1, 5 of 8"};
  Outcome disagreement;
  disagreement.disagreement = {{0, 3}, {{std::byte{1}}, {}}};

  for (const Outcome& outcome : {table, failure, disagreement}) {
    const auto bytes = encode(outcome);
    const auto back = decode_outcome(bytes);
    REQUIRE(back.has_value());
    CHECK(encode(*back) == bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      REQUIRE_FALSE(decode_outcome(std::span(bytes).first(size)).has_value());
    }
    auto longer = bytes;
    longer.push_back(std::byte{0});
    CHECK_FALSE(decode_outcome(longer).has_value());
  }
  const auto back = decode_outcome(encode(table));
  CHECK(back->table->processes[0].ranks == std::vector<int>{0, 2});
  CHECK(back->table->processes[1].name == UnixName{true, "pkcomm-x.sock"});
  CHECK(back->table->name_of(0) == "ranks 0, 2 (pid 10)");

  std::mt19937_64 random(21);
  const auto model = encode(table);
  for (int round = 0; round < 20000; ++round) {
    auto bytes = model;
    for (int change = 0; change < 3; ++change)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto read = decode_outcome(bytes);
    if (!read || !read->table) continue;
    for (const int process : read->table->process_of_rank) {
      REQUIRE(process < static_cast<int>(read->table->processes.size()));
    }
  }
}

TEST_CASE("a list of ranks is short", "[unit][bootstrap]") {
  const auto list = [](std::vector<int> ranks) { return rank_list(ranks); };
  CHECK(list({3}) == "rank 3");
  CHECK(list({0, 1}) == "ranks 0, 1");
  CHECK(list({0, 1, 2, 5, 7, 8}) == "ranks 0-2, 5, 7, 8");
  std::vector<int> even;
  for (int rank = 0; rank < 100; rank += 2) even.push_back(rank);
  CHECK(list(even) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 38 more");
}

TEST_CASE("a table tells which processes cannot reach each other", "[unit][bootstrap]") {
  Table table;
  table.processes = {{10, 7, {false, "a"}, {0}}, {11, 7, {false, "b"}, {1}}};
  table.process_of_rank = {0, 1};
  CHECK(table.check_reachable().ok());
  table.processes[1].place = 0;  // unknown
  CHECK(table.check_reachable().ok());
  table.processes[1].place = 8;
  CHECK(table.check_reachable().code() == pkcommUnsupported);
  CHECK_THAT(table.check_reachable().message(), test::contains_text("rank 1 (pid 11)"));
  table.processes[1].name.is_file = true;
  CHECK(table.check_reachable().code() == pkcommInvalidUsage);
  CHECK_THAT(table.check_reachable().message(),
             test::contains_text("is set for rank 1 (pid 11) and not for rank 0"));
  table.processes[0].name.is_file = true;  // namespaces may differ
  CHECK(table.check_reachable().ok());
}

TEST_CASE("an id of zeros, of random bytes or with a damaged byte is an invalid argument (C21)",
          "[unit][bootstrap]") {
  pkcommUniqueId id = {};
  CHECK(validate(id).code() == pkcommInvalidArgument);
  std::mt19937_64 random(22);
  for (int round = 0; round < 1000; ++round) {
    for (char& byte : id.internal) byte = static_cast<char>(random());
    CHECK(validate(id).code() == pkcommInvalidArgument);
  }
  const auto made = create_unique_id(1);
  REQUIRE(made.ok());
  CHECK(validate(made.value()).ok());
  for (std::size_t byte = 0; byte < sizeof(IdContent); ++byte) {
    id = made.value();
    id.internal[byte] = static_cast<char>(id.internal[byte] ^ 4);
    REQUIRE(validate(id).code() == pkcommInvalidArgument);
  }
}
