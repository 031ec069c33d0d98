// CUDA graphs: every kind of call captured, replayed with other data, between eager calls, on forked streams.
#include <barrier>
#include <deque>
#include <vector>

#include "gpu/gpu.hpp"
#include "support/mixed_call.hpp"

using namespace pkcomm::test;

namespace {

constexpr std::uint64_t kSeed = 20;

/// Numbers of calls among which every kind is, `each` times.
std::vector<std::uint64_t> calls_of_every_kind(int nranks, int each) {
  std::vector<int> left(PKCOMM_COLLECTIVES, each);
  std::vector<std::uint64_t> calls;
  for (std::uint64_t call = 0; calls.size() < left.size() * static_cast<std::size_t>(each); ++call) {
    int& wanted = left[static_cast<std::size_t>(CallPlan::make(kSeed, call, nranks).kind)];
    if (wanted > 0) calls.push_back(call), --wanted;
  }
  return calls;
}

std::vector<MixedCall::Heap> heaps(Rank& self, std::size_t count) {
  std::vector<MixedCall::Heap> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(MixedCall::Heap::allocate(self));
  return all;
}

bool all_right(std::deque<MixedCall>& calls, std::uint64_t round) {
  bool good = true;
  for (MixedCall& call : calls) good = call.check(round) && good;
  return good;
}

}  // namespace

TEST_CASE("a graph of every collective is replayed with other data, between eager calls", "[gpu][graph]") {
  const int nranks = gpu_ranks();
  const std::vector<std::uint64_t> numbers = calls_of_every_kind(nranks, 3);
  reserve_visible(std::size_t{1} << 30);
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    const std::vector<MixedCall::Heap> blocks = heaps(self, numbers.size() + 1);
    std::deque<MixedCall> calls;
    for (std::size_t i = 0; i < numbers.size(); ++i) calls.emplace_back(kSeed, numbers[i], self, blocks[i]);
    self.synchronize("buffers");
    Graph graph(self, self.stream, [&] {
      for (MixedCall& call : calls) call.enqueue();
    });
    all_are_ready.arrive_and_wait();
    for (std::uint64_t round = 0; round < 20; ++round) {
      for (MixedCall& call : calls) call.write(round);
      if (!graph.launch() || !self.synchronize("graph") || !all_right(calls, round)) return;
      MixedCall eager(kSeed + 1, round, self, blocks.back());
      eager.write(0);
      if (!eager.enqueue() || !self.synchronize("eager call") || !eager.check(0)) return;
    }
  });
}

TEST_CASE("a graph may fork to a second stream and join it", "[gpu][graph]") {
  const int nranks = gpu_ranks();
  const std::vector<std::uint64_t> numbers = calls_of_every_kind(nranks, 2);
  reserve_visible(std::size_t{1} << 30);
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    const std::vector<MixedCall::Heap> blocks = heaps(self, numbers.size());
    pkcommStream_t other = nullptr;
    if (!self.ok(pkcommStreamCreate(&other), "stream")) return;
    {
      std::deque<MixedCall> calls;
      for (std::size_t i = 0; i < numbers.size(); ++i)
        calls.emplace_back(kSeed, numbers[i], self.with(i % 2 == 0 ? self.stream : other), blocks[i]);
      self.synchronize("buffers");
      self.synchronize(other, "buffers");
      Event fork(self), join(self);
      Graph graph(self, self.stream, [&] {
        fork.order(self.stream, other);
        for (MixedCall& call : calls) call.enqueue();
        join.order(other, self.stream);
      });
      all_are_ready.arrive_and_wait();
      for (std::uint64_t round = 0; round < 10; ++round) {
        for (MixedCall& call : calls) call.write(round);
        if (!graph.launch() || !self.synchronize("graph") || !all_right(calls, round)) break;
      }
    }
    self.ok(pkcommStreamDestroy(other), "stream destroy");
  });
}

TEST_CASE("a random mix of collectives in graphs equals the serial reference", "[gpu][graph][mix]") {
  const int nranks = gpu_ranks();
  constexpr std::uint64_t kTogether = 25;
  const std::uint64_t operations = test_setting("OPERATIONS").value_or(2000);
  const std::uint64_t seed = test_setting("SEED").value_or(1);
  CAPTURE(operations, seed);
  reserve_visible(std::size_t{1} << 30);
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    const std::vector<MixedCall::Heap> blocks = heaps(self, kTogether);
    for (std::uint64_t next = 0; next < operations; next += kTogether) {
      std::deque<MixedCall> calls;
      for (std::uint64_t i = 0; i < kTogether; ++i) calls.emplace_back(seed, next + i, self, blocks[i]);
      self.synchronize("buffers");
      Graph graph(self, self.stream, [&] {
        for (MixedCall& call : calls) call.enqueue();
      });
      all_are_ready.arrive_and_wait();
      for (std::uint64_t round = 0; round < 2; ++round) {
        for (MixedCall& call : calls) call.write(round);
        if (graph.launch() && self.synchronize("graph")) all_right(calls, round);
      }
    }
  });
}

TEST_CASE("a thousand replays in a row each see the data of their turn", "[gpu][graph]") {
  const int nranks = gpu_ranks();
  constexpr std::size_t kReplays = 1000;
  const std::size_t count = GENERATE(as<std::size_t>{}, 1, 1000, 100003);
  const Place place = GENERATE(Place::kDevice, Place::kSymmetric);
  CAPTURE(count, static_cast<int>(place));
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    Memory block(self, place, count * 4, 4);
    std::fill_n(block.as<std::int32_t>(), count, 0);
    block.upload();
    Visible<std::int32_t> in(kReplays), first(kReplays), last(kReplays);
    for (std::size_t k = 0; k < kReplays; ++k) in[k] = static_cast<std::int32_t>(k) * (self.rank + 1);
    self.synchronize("buffers");
    Graph graph(self, self.stream, [&] {
      self.ok(pkcommAllReduce(block.at(), block.at(), count, pkcommInt32, pkcommSum, self.comm, self.stream),
              "all_reduce");
    });
    all_are_ready.arrive_and_wait();
    for (std::size_t k = 0; k < kReplays; ++k) {
      copy_on(self.stream, block.at(), &in[k], 4);
      copy_on(self.stream, block.at((count - 1) * 4), &in[k], 4);
      graph.launch();
      copy_on(self.stream, &first[k], block.at(), 4);
      copy_on(self.stream, &last[k], block.at((count - 1) * 4), 4);
    }
    if (!self.synchronize("replays")) return;
    for (std::size_t k = 0; k < kReplays; ++k) {
      const auto wanted = static_cast<std::int32_t>(k) * self.nranks * (self.nranks + 1) / 2;
      if (!self.expect(first[k] == wanted && last[k] == wanted, "replay " + std::to_string(k) + " gave " +
                                                                    std::to_string(first[k]) + " and " +
                                                                    std::to_string(last[k])))
        return;
    }
  });
}

TEST_CASE("two graphs of one communicator take turns with each other and with eager calls", "[gpu][graph]") {
  const int nranks = gpu_ranks();
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    Visible<std::int32_t> x{1, 2, 3};
    const auto add = [&](std::size_t i) {
      self.ok(pkcommAllReduce(&x[i], &x[i], 1, pkcommInt32, pkcommSum, self.comm, self.stream), "all_reduce");
    };
    Graph one(self, self.stream, [&] { add(0); });
    Graph three(self, self.stream, [&] {
      add(1);
      add(1);
      add(1);
    });
    all_are_ready.arrive_and_wait();
    for (int round = 0; round < 200; ++round) {
      std::fill(x.begin(), x.end(), round);
      const std::size_t which = static_cast<std::size_t>(round) % 7 % 3;
      if (which == 0) one.launch();
      if (which == 1) three.launch();
      if (which == 2) add(2);
      if (!self.synchronize("round")) return;
      const std::int32_t times = which == 1 ? self.nranks * self.nranks * self.nranks : self.nranks;
      self.expect(x[which] == round * times,
                  "round " + std::to_string(round) + " gave " + std::to_string(x[which]));
    }
  });
}

TEST_CASE("a pre-multiplier in device memory is read at each replay", "[gpu][graph]") {
  const int nranks = gpu_ranks();
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    Visible<float> scalar{1}, x{1, 0};
    pkcommRedOp_t op;
    if (!self.ok(pkcommRedOpCreatePreMulSum(&op, scalar.data(), pkcommFloat32, pkcommScalarDevice, self.comm),
                 "op"))
      return;
    {
      Graph graph(self, self.stream, [&] {
        self.ok(pkcommAllReduce(&x[0], &x[1], 1, pkcommFloat32, op, self.comm, self.stream), "all_reduce");
      });
      all_are_ready.arrive_and_wait();
      for (int round = 0; round < 20; ++round) {
        scalar[0] = static_cast<float>(round + self.rank);
        if (!graph.launch() || !self.synchronize("graph")) break;
        const auto wanted = static_cast<float>(round * self.nranks + self.nranks * (self.nranks - 1) / 2);
        self.expect(x[1] == wanted, "round " + std::to_string(round) + " gave " + std::to_string(x[1]));
      }
    }
    self.ok(pkcommRedOpDestroy(op, self.comm), "destroy");
  });
}

TEST_CASE("puts and signals of a graph keep count over its replays", "[gpu][graph]") {
  const int nranks = gpu_ranks();
  constexpr std::size_t kCount = 5000;
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    void* heap = nullptr;
    if (!self.ok(pkcommHeapAlloc(self.comm, kCount * 4, &heap), "heap")) return;
    Visible<std::int32_t> out(kCount), in(kCount);
    const int next = (self.rank + 1) % self.nranks, previous = (self.rank + self.nranks - 1) % self.nranks;
    Graph graph(self, self.stream, [&] {
      self.ok(pkcommPut(out.data(), heap, kCount * 4, next, self.comm, self.stream), "put");
      self.ok(pkcommSignal(next, 5, self.comm, self.stream), "signal");
      self.ok(pkcommWaitSignal(previous, 5, 1, self.comm, self.stream), "wait");
      copy_on(self.stream, in.data(), heap, kCount * 4);
      // Nobody puts the next words before all have read these.
      self.ok(pkcommBarrier(self.comm, self.stream), "barrier");
    });
    all_are_ready.arrive_and_wait();
    for (int round = 0; round < 50; ++round) {
      std::fill(out.begin(), out.end(), 1000 * round + self.rank);
      if (!graph.launch() || !self.synchronize("graph")) return;
      if (!self.expect(in == Visible<std::int32_t>(kCount, 1000 * round + previous),
                       "round " + std::to_string(round) + " is wrong"))
        return;
    }
  });
}
