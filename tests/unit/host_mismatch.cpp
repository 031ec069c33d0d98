// A peer that called something else, found out by each wait, whatever the peer has done since.
#include "support/catch.hpp"
#include "unit/host_rank.hpp"

using namespace pkcomm;
using namespace pkcomm::host;

namespace {

/// An operation of 64 bytes a block, in and out of the heap.
Operation operation(const LoneRank& rank, Collective collective, std::uint64_t fingerprint,
                    bool zero_copy = false) {
  Operation op;
  op.collective = collective;
  op.count = op.block = op.block_stride = 64;
  op.chunk = 4096;
  op.fingerprint = fingerprint;
  op.zero_copy = zero_copy;
  op.send_offset = rank.view().layout.bytes;
  op.recv_offset = op.send_offset + 4096;
  op.send = rank.heap(rank.view().rank);
  op.recv = rank.heap(rank.view().rank) + 4096;
  return op;
}

void check_mismatch(const Status& status, const std::string& theirs, const std::string& ours) {
  CHECK(status.code() == pkcommMismatch);
  CAPTURE(status.message());
  CHECK(status.message().find(theirs) != std::string::npos);
  CHECK(status.message().find(ours) != std::string::npos);
  CHECK(status.message().find("operation 1") != std::string::npos);
}

}  // namespace

// Ranks 0 and 2 are the test's. Rank 0 has gone on to operation 2, its first call having been one that brings rank 1 nothing.
TEST_CASE("a peer that has passed an operation by is not taken for one that took part in it",
          "[unit][host]") {
  LoneRank lone(1, 3);
  const View& view = lone.view();
  Operation gather = operation(lone, Collective::kGather, 7);
  gather.root = 2;
  const std::uint64_t first = next_word(0, gather.fingerprint);
  const std::uint64_t second = next_word(first, 9);
  lone.calls(0, first, gather);
  lone.calls(0, second, operation(lone, Collective::kAllGather, 9));
  *view.header(1, 2, 0, 0) = second;
  *view.arrive(1, 0, 0, 0) = make_word(2, 1);

  SECTION("its raw slots") {
    const Operation op = operation(lone, Collective::kAllGather, 9);
    const std::uint64_t word = next_word(0, op.fingerprint);
    lone.calls(2, word, op);
    *view.header(1, 1, 0, 2) = word;
    *view.arrive(1, 0, 0, 2) = make_word(1, 1);
    check_mismatch(lone.executor->run(op, Algorithm::kDirectLdst, 1), "gather", "all_gather");
  }
  SECTION("its user memory") {
    const Operation op = operation(lone, Collective::kAllGather, 9, true);
    const std::uint64_t word = next_word(0, op.fingerprint);
    lone.calls(2, word, op);
    *view.header(1, 1, 0, 2) = word;
    *view.arrive(1, 0, 0, 2) = make_word(1, 1);
    std::memset(lone.heap(0), 0x5a, LoneRank::kHeapBytes);
    check_mismatch(lone.executor->run(op, Algorithm::kDirectLdst, 1), "gather", "all_gather");
    for (std::uint64_t i = 0; i < LoneRank::kHeapBytes; ++i) REQUIRE(lone.heap(0)[i] == std::byte{0x5a});
  }
  SECTION("its word that user memory here is complete") {
    const Operation op = operation(lone, Collective::kBroadcast, 9, true);
    check_mismatch(lone.executor->run(op, Algorithm::kDirectLdst, 1), "gather", "broadcast");
  }
}

TEST_CASE("calls that differed without a meeting are found out at the next one", "[unit][host]") {
  LoneRank lone(1, 2);
  Operation theirs = operation(lone, Collective::kBroadcast, 7);
  Operation ours = operation(lone, Collective::kBroadcast, 8);
  ours.root = 1;
  const Operation both = operation(lone, Collective::kAllGather, 9);
  lone.calls(0, next_word(0, theirs.fingerprint), theirs);
  REQUIRE(lone.executor->run(ours, Algorithm::kOneShotLl, 1).ok());  // the root waits for nobody
  lone.calls(0, next_word(next_word(0, theirs.fingerprint), both.fingerprint), both);
  check_mismatch(lone.executor->run(both, Algorithm::kDirectLdst, 1), "root 0", "root 1");
}

TEST_CASE("an all_to_all_v that waits for several peers sees that one of them called something else",
          "[unit][host]") {
  LoneRank lone(0, 3);
  Operation op = operation(lone, Collective::kAllToAllV, 7);
  lone.calls(1, next_word(0, op.fingerprint), op);
  const Operation other = operation(lone, Collective::kAllGather, 9);
  lone.calls(2, next_word(0, other.fingerprint), other);
  std::vector<Transfer> transfers;
  transfers.push_back({lone.heap(0), 64, 1, false});
  transfers.push_back({lone.heap(0) + 64, 64, 2, false});
  check_mismatch(lone.executor->run_all_to_all_v(op, transfers), "all_gather", "all_to_all_v");
}
