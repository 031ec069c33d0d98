// CUDA's default streams, and several communicators that need the GPU at the same time.
#include <vector>

#include "gpu/gpu.hpp"

using namespace pkcomm::test;

namespace {

void reduce_often(Rank& self, cudaStream_t stream) {
  Memory block(self, Place::kDevice, 4000, 4);
  self.synchronize("buffer");
  Visible<std::int32_t> in(1000), out(1000);
  for (int round = 0; round < 100; ++round) {
    std::fill(in.begin(), in.end(), self.rank + round);
    copy_on(stream, block.at(), in.data(), 4000);
    self.ok(pkcommAllReduce(block.at(), block.at(), 1000, pkcommInt32, pkcommSum, self.comm, stream),
            "all_reduce");
    copy_on(stream, out.data(), block.at(), 4000);
    if (!self.synchronize(stream, "all_reduce")) return;
    const std::int32_t wanted = self.nranks * round + self.nranks * (self.nranks - 1) / 2;
    if (!self.expect(out == Visible<std::int32_t>(1000, wanted),
                     "round " + std::to_string(round) + " is wrong"))
      return;
  }
}

}  // namespace

TEST_CASE("the legacy default stream, by either name, is a stream like any other", "[gpu][stream]") {
  if (!a_device_each(gpu_ranks())) return;
  run_world(gpu_ranks(), [](Rank& self) {
    reduce_often(self, nullptr);
    reduce_often(self, cudaStreamLegacy);
  });
}

TEST_CASE("work on the legacy default stream keeps its order with blocking streams", "[gpu][stream]") {
  if (!a_device_each(gpu_ranks())) return;
  run_world(gpu_ranks(), [](Rank& self) {
    cudaStream_t blocking = nullptr;
    if (!succeeds(self, cudaStreamCreate(&blocking), "cudaStreamCreate")) return;
    Visible<std::int32_t> in{0}, out{0};
    {
      Memory block(self, Place::kDevice, 4, 4);
      self.synchronize("buffer");
      for (int round = 0; round < 100; ++round) {
        in[0] = self.rank + round;
        copy_on(blocking, block.at(), in.data(), 4);
        self.ok(pkcommAllReduce(block.at(), block.at(), 1, pkcommInt32, pkcommSum, self.comm, nullptr),
                "all_reduce");
        copy_on(blocking, out.data(), block.at(), 4);
        if (!self.synchronize(blocking, "all_reduce")) break;
        self.expect(out[0] == self.nranks * round + self.nranks * (self.nranks - 1) / 2,
                    "round " + std::to_string(round) + " gave " + std::to_string(out[0]));
      }
    }
    succeeds(self, cudaStreamDestroy(blocking), "cudaStreamDestroy");
  });
}

TEST_CASE("the per-thread default stream is a stream like any other", "[gpu][stream]") {
  run_world(gpu_ranks(), [](Rank& self) { reduce_often(self, cudaStreamPerThread); });
}

TEST_CASE("communicators in flight together on a GPU do not wait for each other", "[gpu][stream]") {
  // Eight at once is what a device has room for.
  const int nranks = gpu_ranks(), each = std::max(1, 8 * device_count() / nranks);
  const std::size_t count = GENERATE(as<std::size_t>{}, 1, 4 << 20);
  CAPTURE(nranks, each, count);
  run_world(nranks, [&](Rank& self) {
    struct Lane {
      pkcommComm_t comm = nullptr;
      pkcommStream_t stream = nullptr;
      DeviceBlock block;
    };
    std::vector<Lane> lanes(static_cast<std::size_t>(each));
    Visible<std::int32_t> values(lanes.size());
    for (Lane& lane : lanes) {
      self.ok(pkcommCommSplit(self.comm, 0, self.rank, &lane.comm, nullptr), "split");
      self.ok(pkcommStreamCreate(&lane.stream), "stream");
      lane.block = DeviceBlock(count * 4);
    }
    for (int round = 0; round < 20; ++round) {
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        // Half of the ranks go the other way round.
        const std::size_t which = self.rank % 2 == 0 ? i : lanes.size() - 1 - i;
        Lane& lane = lanes[which];
        std::byte* const at = lane.block.data();
        values[which] = 100 * static_cast<std::int32_t>(which) + round;
        copy_on(lane.stream, at + (count - 1) * 4, &values[which], 4);
        self.ok(pkcommAllReduce(at, at, count, pkcommInt32, pkcommSum, lane.comm, lane.stream), "all_reduce");
        copy_on(lane.stream, &values[which], at + (count - 1) * 4, 4);
      }
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        const Ending ending = finish(lanes[i].comm, lanes[i].stream);
        const std::int32_t wanted = self.nranks * (100 * static_cast<std::int32_t>(i) + round);
        self.expect(ending.result == pkcommSuccess, "lane " + std::to_string(i) + ": " + ending.text);
        self.expect(values[i] == wanted, "lane " + std::to_string(i) + " gave " + std::to_string(values[i]));
      }
    }
    for (const Lane& lane : lanes) {
      self.ok(pkcommCommDestroy(lane.comm), "destroy");
      self.ok(pkcommStreamDestroy(lane.stream), "stream destroy");
    }
  });
}
