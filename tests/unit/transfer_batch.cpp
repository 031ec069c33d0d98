// Groups of sends and receives as launches: every transfer once, in the order of its lane.
#include "collectives/cuda/transfer_batch.hpp"

#include "support/catch.hpp"

using namespace pkcomm;
using cuda::transfer_batches;

namespace {

std::byte* address(std::uintptr_t at) { return reinterpret_cast<std::byte*>(at); }

constexpr int kMost = 8;
using Batch = cuda::TransferBatch<kMost>;

std::vector<Batch> batches_of(const std::vector<Transfer>& transfers, int rank, int nranks) {
  auto batches = transfer_batches<kMost>(Operation{}, transfers, rank, nranks);
  REQUIRE(batches.ok());
  return std::move(batches).value();
}

}  // namespace

TEST_CASE("lanes go round from the next rank, and transfers of a lane keep their order", "[unit][cuda]") {
  const std::vector<Transfer> transfers = {{address(1), 10, 0, true},  {address(2), 20, 2, true},
                                           {address(3), 30, 0, false}, {address(4), 40, 2, true},
                                           {address(5), 50, 1, true},  {address(6), 50, 1, false}};
  const std::vector<Batch> batches = batches_of(transfers, 1, 3);
  REQUIRE(batches.size() == 1);
  const Batch& batch = batches.front();
  REQUIRE(batch.lanes == 3);
  CHECK(batch.lane[0].peer == 2);  // to the next rank
  CHECK(batch.lane[0].sends == 1);
  REQUIRE(batch.lane[0].count == 2);
  CHECK(batch.buffers[batch.lane[0].first].data == address(2));
  CHECK(batch.buffers[batch.lane[0].first + 1].data == address(4));
  CHECK(batch.buffers[batch.lane[0].first + 1].bytes == 40);
  CHECK(batch.lane[1].peer == 0);  // from the one before
  CHECK(batch.lane[1].sends == 0);
  CHECK(batch.buffers[batch.lane[1].first].data == address(3));
  CHECK(batch.lane[2].peer == 0);
  CHECK(batch.lane[2].sends == 1);
  REQUIRE(batch.copies == 1);  // what the rank sends itself
  CHECK(batch.buffers[0].data == address(6));
  CHECK(batch.buffers[1].data == address(5));
}

TEST_CASE("more transfers than a launch holds become several, a few messages of every lane each",
          "[unit][cuda]") {
  std::vector<Transfer> transfers;
  for (std::uintptr_t i = 0; i < 7; ++i) transfers.push_back({address(100 + i), i + 1, 1, true});
  for (std::uintptr_t i = 0; i < 2; ++i) transfers.push_back({address(200 + i), i + 1, 2, false});
  transfers.push_back({address(300), 1, 0, true});
  transfers.push_back({address(301), 1, 0, false});
  const std::vector<Batch> batches = batches_of(transfers, 0, 3);
  REQUIRE(batches.size() == 2);  // 4 + 2 + 1 + 1 buffers, then the rest
  std::uintptr_t next = 100;
  for (const Batch& batch : batches) {
    CHECK(batch.copies == (&batch == &batches.front() ? 1 : 0));
    for (int lane = 0; lane < batch.lanes; ++lane) {
      const auto& of = batch.lane[lane];
      for (int i = 0; of.peer == 1 && i < of.count; ++i)
        CHECK(batch.buffers[of.first + i].data == address(next++));
    }
  }
  CHECK(next == 107);
  CHECK(batches[0].lanes == 2);
  CHECK(batches[1].lanes == 1);
}

TEST_CASE("no transfers are one launch, too many lanes an error", "[unit][cuda]") {
  CHECK(batches_of({}, 0, 4).size() == 1);  // an all_to_all_v is announced even so
  std::vector<Transfer> transfers;
  for (int peer = 1; peer <= kMost + 1; ++peer) transfers.push_back({address(1), 1, peer, true});
  const auto batches = transfer_batches<kMost>(Operation{}, transfers, 0, kMost + 2);
  CHECK(batches.status().code() == pkcommUnsupported);
  CHECK(batches.status().message().find("9 peers") != std::string::npos);
}

TEST_CASE("batches fit into kernel parameters", "[unit][cuda]") {
  CHECK(sizeof(cuda::TransferBatch<cuda::kManyTransfers>) + sizeof(View) + 64 <= 32764);
}
