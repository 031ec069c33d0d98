// Streams, groups of several communicators, and communicators made in one call or by splitting.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/world.hpp"

using namespace pkcomm::test;

TEST_CASE("one thread drives all ranks of a process in a group", "[conformance]") {
  constexpr int kRanks = 4;
  const bool one_stream = GENERATE(false, true);
  CAPTURE(one_stream);
  pkcommComm_t comms[kRanks];
  REQUIRE(pkcommCommInitAll(comms, kRanks, nullptr) == pkcommSuccess);
  pkcommStream_t streams[kRanks];
  for (pkcommStream_t& stream : streams) REQUIRE(pkcommStreamCreate(&stream) == pkcommSuccess);
  for (int round = 0; round < 50; ++round) {
    int in[kRanks], out[kRanks];
    REQUIRE(pkcommGroupStart() == pkcommSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      in[rank] = rank + round;
      REQUIRE(pkcommAllReduce(&in[rank], &out[rank], 1, pkcommInt32, pkcommSum, comms[rank],
                              streams[one_stream ? 0 : rank]) == pkcommSuccess);
    }
    REQUIRE(pkcommGroupEnd() == pkcommSuccess);
    for (const pkcommStream_t stream : streams) REQUIRE(pkcommStreamSynchronize(stream) == pkcommSuccess);
    for (const int result : out) REQUIRE(result == 6 + kRanks * round);
  }
  for (const pkcommComm_t comm : comms) CHECK(pkcommCommDestroy(comm) == pkcommSuccess);
  for (const pkcommStream_t stream : streams) CHECK(pkcommStreamDestroy(stream) == pkcommSuccess);
}

TEST_CASE("default streams work, one for each rank's device", "[conformance]") {
  run_world(4, [](Rank& self) {
    for (int round = 0; round < 20; ++round) {
      int value = self.rank + 1, sum = 0;
      self.ok(pkcommAllReduce(&value, &sum, 1, pkcommInt32, pkcommSum, self.comm, nullptr), "all_reduce");
      self.ok(pkcommStreamSynchronize(nullptr), "synchronize");
      self.expect(sum == 10, "sum is " + std::to_string(sum));
    }
  });
}

TEST_CASE("waiting for the default stream does not wait for other ranks' next work", "[conformance]") {
  run_world(4, [](Rank& self) {
    for (int round = 0; round < 200; ++round) {
      // The root waits for nobody, so the ranks drift apart.
      int value = round;
      self.ok(pkcommBroadcast(&value, &value, 1, pkcommInt32, round % self.nranks, self.comm, nullptr),
              "broadcast");
      self.ok(pkcommStreamSynchronize(nullptr), "synchronize");
      self.expect(value == round, "value is " + std::to_string(value));
    }
  });
}

TEST_CASE("operations of one communicator keep their order across streams", "[conformance]") {
  run_world(2, [](Rank& self) {
    pkcommStream_t other = nullptr;
    self.ok(pkcommStreamCreate(&other), "create");
    for (int round = 0; round < 200; ++round) {
      int first = self.rank + round, sum = 0, total = 0;
      self.ok(pkcommAllReduce(&first, &sum, 1, pkcommInt32, pkcommSum, self.comm, self.stream), "first");
      self.ok(pkcommAllReduce(&sum, &total, 1, pkcommInt32, pkcommSum, self.comm, other), "second");
      self.ok(pkcommStreamSynchronize(other), "synchronize");
      self.expect(total == 2 * (2 * round + 1), "total is " + std::to_string(total));
    }
    self.ok(pkcommStreamDestroy(other), "destroy");
  });
}

TEST_CASE("work that nobody waits for is done all the same", "[conformance]") {
  run_world(2, [](Rank& self) {
    int value = self.rank + 1, sum = 0;
    self.ok(pkcommAllReduce(&value, &sum, 1, pkcommInt32, pkcommSum, self.comm, self.stream), "all_reduce");
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (pkcommStreamQuery(self.stream) == pkcommInProgress && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    self.ok(pkcommStreamQuery(self.stream), "query");
    self.expect(sum == 3, "sum is " + std::to_string(sum));
  });
}

TEST_CASE("functions run on a stream in order with collectives", "[conformance]") {
  run_world(2, [](Rank& self) {
    struct Step {
      int value, sum, seen;
    } step{self.rank + 1, 0, 0};
    self.ok(pkcommAllReduce(&step.value, &step.sum, 1, pkcommInt32, pkcommSum, self.comm, self.stream),
            "all_reduce");
    self.ok(
        pkcommStreamEnqueue(
            self.stream,
            [](void* argument) { static_cast<Step*>(argument)->seen = static_cast<Step*>(argument)->sum; },
            &step),
        "enqueue");
    self.synchronize("all");
    self.expect(step.seen == 3, "the function saw " + std::to_string(step.seen));
  });
}

TEST_CASE("a split makes independent communicators ordered by key", "[conformance]") {
  run_world(5, [](Rank& self) {
    pkcommComm_t part = nullptr;
    const int color = self.rank == 4 ? PKCOMM_SPLIT_NOCOLOR : self.rank % 2;
    self.ok(pkcommCommSplit(self.comm, color, -self.rank, &part, nullptr), "split");
    if (color == PKCOMM_SPLIT_NOCOLOR) {
      self.expect(part == nullptr, "no colour, but a communicator");
      return;
    }
    int rank = -1, count = -1;
    self.ok(pkcommCommUserRank(part, &rank), "rank");
    self.ok(pkcommCommCount(part, &count), "count");
    self.expect(count == 2 && rank == (self.rank < 2 ? 1 : 0),
                "rank " + std::to_string(rank) + " of " + std::to_string(count));
    int value = self.rank + 1, sum = 0;
    self.ok(pkcommAllReduce(&value, &sum, 1, pkcommInt32, pkcommSum, part, self.stream), "all_reduce");
    self.synchronize("all_reduce");
    self.expect(sum == (color == 0 ? 4 : 6), "sum is " + std::to_string(sum));
    self.ok(pkcommCommDestroy(part), "destroy");
  });
}

TEST_CASE("non-blocking init reports progress and then success", "[conformance]") {
  pkcommConfig_t config = limited_config();
  config.blocking = 0;
  run_world(
      3,
      [](Rank& self) {
        pkcommResult_t state = pkcommInProgress;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (state == pkcommInProgress && std::chrono::steady_clock::now() < limit) {
          self.ok(pkcommCommGetAsyncError(self.comm, &state), "async error");
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        self.expect(state == pkcommSuccess, pkcommGetLastError(self.comm));
        int value = self.rank + 1, sum = 0;
        self.ok(pkcommAllReduce(&value, &sum, 1, pkcommInt32, pkcommSum, self.comm, self.stream),
                "all_reduce");
        self.synchronize("all_reduce");
        self.expect(sum == 6, "sum is " + std::to_string(sum));
      },
      config);
}

TEST_CASE("an abort ends the waits of all ranks", "[conformance]") {
  run_world(3, [](Rank& self) {
    if (self.rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      self.ok(pkcommCommAbort(self.comm), "abort");
      self.comm = nullptr;
      return;
    }
    int value = 1, sum = 0;
    self.ok(pkcommAllReduce(&value, &sum, 1, pkcommInt32, pkcommSum, self.comm, self.stream), "all_reduce");
    self.fails(pkcommStreamSynchronize(self.stream), pkcommAborted, "rank 2", "synchronize");
    pkcommResult_t state = pkcommSuccess;
    self.ok(pkcommCommGetAsyncError(self.comm, &state), "async error");
    self.expect(state == pkcommAborted, "the asynchronous error is " + std::to_string(state));
    self.fails(pkcommAllReduce(&value, &sum, 1, pkcommInt32, pkcommSum, self.comm, self.stream),
               pkcommAborted, "", "later");
  });
}
