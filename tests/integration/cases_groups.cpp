// Sends and receives that could wait for each other, and those to oneself.
#include <utility>

#include "integration/cases.hpp"

using namespace pkcomm::test;

namespace {

constexpr std::size_t kCounts[] = {1, (std::size_t{64} << 20) / 4};

}  // namespace

TEST_CASE("C52 (a) two ranks that both send first wait until the deadline, whatever the size",
          "[integration][C52]") {
  const std::size_t count = GENERATE(from_range(std::begin(kCounts), std::end(kCounts)));
  CAPTURE(count);
  reserve_visible(4 * (count * 4 + 4096));
  run_world(
      2,
      [&](Rank& self) {
        Visible<std::int32_t> out(count, self.rank), in(count, -1);
        self.ok(pkcommSend(out.data(), count, pkcommInt32, 1 - self.rank, self.comm, self.stream), "send");
        (void)pkcommRecv(in.data(), count, pkcommInt32, 1 - self.rank, self.comm, self.stream);
        self.fails_to_finish(pkcommSuccess, pkcommTimeout, "rank " + std::to_string(1 - self.rank),
                             "send before receive");
        pkcommResult_t error = pkcommSuccess;
        self.ok(pkcommCommGetAsyncError(self.comm, &error), "asynchronous error");
        self.expect(error == pkcommTimeout,
                    std::string("the asynchronous error is ") + pkcommGetErrorString(error));
        self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort");
      },
      short_config());
}

TEST_CASE("C52 (b) within a group they do not wait for each other", "[integration][C52]") {
  const std::size_t count = GENERATE(from_range(std::begin(kCounts), std::end(kCounts)));
  CAPTURE(count);
  reserve_visible(4 * (count * 4 + 4096));
  run_world(2, [&](Rank& self) {
    Visible<std::int32_t> out(count, self.rank + 7), in(count, -1);
    self.ok(pkcommGroupStart(), "group");
    self.ok(pkcommSend(out.data(), count, pkcommInt32, 1 - self.rank, self.comm, self.stream), "send");
    self.ok(pkcommRecv(in.data(), count, pkcommInt32, 1 - self.rank, self.comm, self.stream), "recv");
    self.ok(pkcommGroupEnd(), "group");
    self.synchronize("group");
    self.expect(in == Visible<std::int32_t>(count, 1 - self.rank + 7), "what was received is wrong");
  });
}

TEST_CASE("C52 (c) each pair keeps its order, oneself included", "[integration][C52]") {
  run_world(2, [](Rank& self) {
    const int peer = 1 - self.rank;
    for (int round = 0; round < 100; ++round) {
      const Visible<std::int32_t> out{1, 2, 3, 4};
      Visible<std::int32_t> in{-1, -1, -1, -1};
      const int to[] = {self.rank, self.rank, peer, peer};
      self.ok(pkcommGroupStart(), "group");
      for (std::size_t i = 0; i < 4; ++i)
        self.ok(pkcommSend(&out[i], 1, pkcommInt32, to[i], self.comm, self.stream), "send");
      for (std::size_t i = 0; i < 4; ++i)
        self.ok(pkcommRecv(&in[i], 1, pkcommInt32, to[i], self.comm, self.stream), "recv");
      self.ok(pkcommGroupEnd(), "group");
      if (!self.synchronize("group")) return;
      for (std::size_t i = 0; i < 4; ++i) {
        if (!self.expect(in[i] == static_cast<std::int32_t>(i) + 1, "round " + std::to_string(round) +
                                                                        ": message " + std::to_string(i) +
                                                                        " is " + std::to_string(in[i]))) {
          return;
        }
      }
    }
  });
}

TEST_CASE("C52 (d) a send to oneself alone is refused", "[integration][C52]") {
  run_world(2, [](Rank& self) {
    Visible<std::int32_t> x{1, -1};
    std::int32_t *const out = &x[0], *const in = &x[1];
    self.fails(pkcommSend(out, 1, pkcommInt32, self.rank, self.comm, self.stream), pkcommInvalidUsage,
               "this rank itself", "outside a group");
    self.ok(pkcommGroupStart(), "group");
    self.ok(pkcommSend(out, 1, pkcommInt32, self.rank, self.comm, self.stream), "send");
    self.fails(pkcommGroupEnd(), pkcommInvalidUsage, "sends itself 1 messages and receives 0",
               "a group without receive");
    self.ok(pkcommGroupStart(), "group");
    self.ok(pkcommRecv(in, 1, pkcommInt32, self.rank, self.comm, self.stream), "recv");
    self.fails(pkcommGroupEnd(), pkcommInvalidUsage, "receives 1", "a group without send");
    self.ok(pkcommAllReduce(out, in, 1, pkcommInt32, pkcommSum, self.comm, self.stream), "afterwards");
    self.synchronize("afterwards");
    self.expect(*in == 2, "afterwards: the sum is " + std::to_string(*in));
  });
}

TEST_CASE("C52 (e) a group that waits for several ranks hears that one of them has left",
          "[integration][C52]") {
  run_world(
      3,
      [](Rank& self) {
        if (self.rank != 0) {
          self.ok(pkcommCommDestroy(std::exchange(self.comm, nullptr)), "destroy");
          return;
        }
        Visible<std::int32_t> in{-1, -1};
        self.ok(pkcommGroupStart(), "group");
        for (int peer = 1; peer <= 2; ++peer) {
          self.ok(pkcommRecv(&in[static_cast<std::size_t>(peer - 1)], 1, pkcommInt32, peer, self.comm,
                             self.stream),
                  "recv");
        }
        self.ok(pkcommGroupEnd(), "group");
        self.fails_to_finish(pkcommSuccess, pkcommRemoteError, "has left the communicator", "the group");
        self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort");
      },
      short_config());
}
