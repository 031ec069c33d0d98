// Kernels that wait in vain end, with the reason, and the GPU is as usable as before.
#include <barrier>
#include <chrono>
#include <thread>
#include <utility>

#include "gpu/gpu.hpp"

using namespace pkcomm::test;

namespace {

using Clock = std::chrono::steady_clock;

pkcommConfig_t config_with_deadline(std::int64_t timeout_ms) {
  pkcommConfig_t config = limited_config();
  config.timeout_ms = timeout_ms;
  return config;
}

pkcommResult_t all_reduce(Rank& self, Visible<std::int32_t>& x) {
  return pkcommAllReduce(x.data(), x.data(), x.size(), pkcommInt32, pkcommSum, self.comm, self.stream);
}

/// The kernels of the stream have ended, without an error of CUDA's, no later than `ms` from `begin`.
void expect_end(Rank& self, Clock::time_point begin, std::int64_t ms) {
  succeeds(self, cudaStreamSynchronize(self.stream), "cudaStreamSynchronize");
  succeeds(self, cudaGetLastError(), "cudaGetLastError");
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  self.expect(took <= ms, "the kernels ended after " + std::to_string(took) + " ms");
}

/// More of the same returns at once, and a new communicator works on the same devices.
void expect_usable(Rank& self, pkcommResult_t failure, const pkcommUniqueId& id) {
  Visible<std::int32_t> x{self.rank + 1};
  self.expect(all_reduce(self, x) == failure, "a later call has another result");
  self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort");
  const pkcommConfig_t config = limited_config();
  if (!self.ok(pkcommCommInitRankConfig(&self.comm, self.nranks, id, self.rank, &config), "second init"))
    return;
  self.ok(all_reduce(self, x), "all_reduce");
  self.synchronize("all_reduce");
  self.expect(x[0] == self.nranks * (self.nranks + 1) / 2, "the sum is " + std::to_string(x[0]));
}

pkcommUniqueId make_id() {
  pkcommUniqueId id;
  REQUIRE(pkcommGetUniqueId(&id) == pkcommSuccess);
  return id;
}

}  // namespace

TEST_CASE("calls that differ end the kernels of all ranks with who called what", "[gpu][failure]") {
  const pkcommUniqueId id = make_id();
  run_world(
      gpu_ranks(),
      [&](Rank& self) {
        Visible<std::int32_t> x(self.rank == 0 ? 1000 : 999, 1);
        const auto begin = Clock::now();
        const pkcommResult_t called = all_reduce(self, x);
        expect_end(self, begin, 6000);
        self.fails_to_finish(called, pkcommMismatch, "1000", "all_reduce");
        self.fails_to_finish(called, pkcommMismatch, "999", "all_reduce");
        expect_usable(self, pkcommMismatch, id);
      },
      config_with_deadline(5000));
}

TEST_CASE("a kernel whose peer never comes ends at the deadline and names it", "[gpu][failure]") {
  const int nranks = gpu_ranks(), absent = nranks - 1;
  const pkcommUniqueId id = make_id();
  std::barrier all_have_heard(nranks);
  run_world(
      nranks,
      [&](Rank& self) {
        Visible<std::int32_t> x{1};
        const auto begin = Clock::now();
        if (self.rank != absent) {
          const pkcommResult_t called = all_reduce(self, x);
          expect_end(self, begin, 4000);
          const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
          self.expect(ms >= 1900 || self.rank > 0, "the kernel ended after " + std::to_string(ms) + " ms");
          self.fails_to_finish(called, pkcommTimeout, "all_reduce", "all_reduce");
          self.fails_to_finish(called, pkcommTimeout, "operation 1", "all_reduce");
          self.fails_to_finish(called, pkcommTimeout, "rank", "all_reduce");
        }
        all_have_heard.arrive_and_wait();
        expect_usable(self, pkcommTimeout, id);
      },
      config_with_deadline(2000));
}

TEST_CASE("an abort from another thread ends a running kernel, here and at the peers", "[gpu][failure]") {
  const int nranks = gpu_ranks(), absent = nranks - 1;
  // Who aborts: the rank that waits, or the one for which all wait.
  const bool own = GENERATE(false, true);
  CAPTURE(own);
  std::barrier all_have_heard(nranks);
  run_world(nranks, [&](Rank& self) {
    Visible<std::int32_t> x{1};
    const int aborting = own ? 0 : absent;
    const auto begin = Clock::now();
    pkcommResult_t called = pkcommSuccess;
    if (self.rank != absent) called = all_reduce(self, x);
    if (self.rank == aborting) {
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort");
      });
      expect_end(self, begin, 2000);
      other.join();
    } else if (self.rank != absent) {
      expect_end(self, begin, 2000);
      self.fails_to_finish(called, pkcommAborted, "rank " + std::to_string(aborting), "all_reduce");
    }
    all_have_heard.arrive_and_wait();
    if (self.comm != nullptr) self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort");
  });
}

TEST_CASE("a graph that one rank replays once too often ends, and so do its later replays",
          "[gpu][failure]") {
  const int nranks = gpu_ranks();
  std::barrier all_are_ready(nranks), all_have_heard(nranks);
  run_world(
      nranks,
      [&](Rank& self) {
        Visible<std::int32_t> x{1};
        {
          Graph graph(self, self.stream, [&] { self.ok(all_reduce(self, x), "all_reduce"); });
          all_are_ready.arrive_and_wait();
          graph.launch();
          self.synchronize("replay of all");
          all_are_ready.arrive_and_wait();
          if (self.rank == 0) {
            const auto begin = Clock::now();
            graph.launch();
            expect_end(self, begin, 4000);
            self.fails_to_finish(pkcommSuccess, pkcommTimeout, "operation 2", "replay of one");
            const auto again = Clock::now();
            for (int i = 0; i < 10; ++i) graph.launch();
            expect_end(self, again, 500);
          }
          all_have_heard.arrive_and_wait();
        }
        self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort");
      },
      config_with_deadline(2000));
}
