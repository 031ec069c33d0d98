// Streams, groups of several communicators, and communicators made in one call or by splitting.
#include <algorithm>
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
  // A CUDA stream belongs to one device.
  const std::vector<int> devices = one_stream ? std::vector<int>(kRanks, 0) : devices_of(kRanks);
  pkcommStream_t streams[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    use_device(devices[static_cast<std::size_t>(rank)]);
    REQUIRE(pkcommStreamCreate(&streams[rank]) == pkcommSuccess);
  }
  pkcommComm_t comms[kRanks];
  // Null means devices 0, 1, 2, ...: the same where there are that many.
  const bool by_number = !on_cuda() || (!one_stream && device_count() >= kRanks);
  REQUIRE(pkcommCommInitAll(comms, kRanks, by_number ? nullptr : devices.data()) == pkcommSuccess);
  for (int round = 0; round < 50; ++round) {
    Visible<int> in(kRanks), out(kRanks);
    REQUIRE(pkcommGroupStart() == pkcommSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      in[rank] = rank + round;
      REQUIRE(pkcommAllReduce(&in[rank], &out[rank], 1, pkcommInt32, pkcommSum, comms[rank],
                              streams[one_stream ? 0 : rank]) == pkcommSuccess);
    }
    REQUIRE(pkcommGroupEnd() == pkcommSuccess);
    for (int rank = 0; rank < kRanks; ++rank)
      REQUIRE(finish(comms[rank], streams[rank]).result == pkcommSuccess);
    for (const int result : out) REQUIRE(result == 6 + kRanks * round);
  }
  for (const pkcommComm_t comm : comms) CHECK(pkcommCommDestroy(comm) == pkcommSuccess);
  for (const pkcommStream_t stream : streams) CHECK(pkcommStreamDestroy(stream) == pkcommSuccess);
}

TEST_CASE("default streams work, one for each rank's device", "[conformance]") {
  if (!a_device_each(2)) return;
  run_world(std::min(4, device_count()), [](Rank& self) {
    for (int round = 0; round < 20; ++round) {
      Visible<int> value{self.rank + 1}, sum{0};
      self.ok(pkcommAllReduce(value.data(), sum.data(), 1, pkcommInt32, pkcommSum, self.comm, nullptr),
              "all_reduce");
      self.synchronize(nullptr, "all_reduce");
      self.expect(sum[0] == self.nranks * (self.nranks + 1) / 2, "sum is " + std::to_string(sum[0]));
    }
  });
}

TEST_CASE("waiting for the default stream does not wait for other ranks' next work", "[conformance]") {
  if (!a_device_each(2)) return;
  run_world(std::min(4, device_count()), [](Rank& self) {
    for (int round = 0; round < 200; ++round) {
      // The root waits for nobody, so the ranks drift apart.
      Visible<int> value{round};
      self.ok(pkcommBroadcast(value.data(), value.data(), 1, pkcommInt32, round % self.nranks, self.comm,
                              nullptr),
              "broadcast");
      self.synchronize(nullptr, "broadcast");
      self.expect(value[0] == round, "value is " + std::to_string(value[0]));
    }
  });
}

TEST_CASE("operations of one communicator keep their order across streams", "[conformance]") {
  run_world(2, [](Rank& self) {
    pkcommStream_t other = nullptr;
    self.ok(pkcommStreamCreate(&other), "create");
    for (int round = 0; round < 200; ++round) {
      Visible<int> x{self.rank + round, 0, 0};
      self.ok(pkcommAllReduce(&x[0], &x[1], 1, pkcommInt32, pkcommSum, self.comm, self.stream), "first");
      self.ok(pkcommAllReduce(&x[1], &x[2], 1, pkcommInt32, pkcommSum, self.comm, other), "second");
      self.synchronize(other, "both");
      self.expect(x[2] == 2 * (2 * round + 1), "the total is " + std::to_string(x[2]));
    }
    self.ok(pkcommStreamDestroy(other), "destroy");
  });
}

TEST_CASE("work that nobody waits for is done all the same", "[conformance]") {
  run_world(2, [](Rank& self) {
    Visible<int> value{self.rank + 1}, sum{0};
    self.ok(pkcommAllReduce(value.data(), sum.data(), 1, pkcommInt32, pkcommSum, self.comm, self.stream),
            "all_reduce");
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (pkcommStreamQuery(self.stream) == pkcommInProgress && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    self.ok(pkcommStreamQuery(self.stream), "query");
    self.expect(sum[0] == 3, "sum is " + std::to_string(sum[0]));
  });
}

TEST_CASE("functions run on a stream in order with collectives", "[conformance]") {
  run_world(2, [](Rank& self) {
    struct Step {
      int value, sum, seen;
    };
    Visible<Step> steps{{self.rank + 1, 0, 0}};
    Step& step = steps[0];
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
    Visible<int> value{self.rank + 1}, sum{0};
    self.ok(pkcommAllReduce(value.data(), sum.data(), 1, pkcommInt32, pkcommSum, part, self.stream),
            "all_reduce");
    const Ending ending = finish(part, self.stream);
    self.expect(ending.result == pkcommSuccess, "all_reduce: " + ending.text);
    self.expect(sum[0] == (color == 0 ? 4 : 6), "sum is " + std::to_string(sum[0]));
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
        Visible<int> value{self.rank + 1}, sum{0};
        self.ok(pkcommAllReduce(value.data(), sum.data(), 1, pkcommInt32, pkcommSum, self.comm, self.stream),
                "all_reduce");
        self.synchronize("all_reduce");
        self.expect(sum[0] == 6, "sum is " + std::to_string(sum[0]));
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
    Visible<int> value{1}, sum{0};
    const auto all_reduce = [&] {
      return pkcommAllReduce(value.data(), sum.data(), 1, pkcommInt32, pkcommSum, self.comm, self.stream);
    };
    self.fails_to_finish(all_reduce(), pkcommAborted, "rank 2", "all_reduce");
    pkcommResult_t state = pkcommSuccess;
    self.ok(pkcommCommGetAsyncError(self.comm, &state), "async error");
    self.expect(state == pkcommAborted, "the asynchronous error is " + std::to_string(state));
    self.fails(all_reduce(), pkcommAborted, "", "later");
  });
}
