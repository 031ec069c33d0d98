// One thread for several GPUs, and the caller's current device.
#include <thread>
#include <vector>

#include "gpu/gpu.hpp"

using namespace pkcomm::test;

TEST_CASE("one thread drives all GPUs in groups, whatever device is current", "[gpu][device]") {
  const int nranks = gpu_ranks();
  const std::vector<int> devices = devices_of(nranks);
  std::vector<pkcommComm_t> comms(devices.size());
  std::vector<cudaStream_t> streams(devices.size());
  std::vector<DeviceBlock> blocks(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    use_device(devices[i]);
    REQUIRE(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) == cudaSuccess);
    blocks[i] = DeviceBlock(devices.size() * 4000);
  }
  use_device(0);
  REQUIRE(pkcommCommInitAll(comms.data(), nranks, devices.data()) == pkcommSuccess);
  Visible<std::int32_t> x(devices.size() * 1000);
  for (int round = 0; round < 50; ++round) {
    REQUIRE(cudaSetDevice(round % device_count()) == cudaSuccess);
    for (std::size_t i = 0; i < devices.size(); ++i)
      std::fill_n(&x[i * 1000], 1000, static_cast<std::int32_t>(i) + round);
    REQUIRE(pkcommGroupStart() == pkcommSuccess);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      std::byte* const at = blocks[i].data();
      copy_on(streams[i], at + i * 4000, &x[i * 1000], 4000);
      // The sums of the own block, then everybody's.
      REQUIRE(pkcommAllReduce(at + i * 4000, at + i * 4000, 1000, pkcommInt32, pkcommSum, comms[i],
                              streams[i]) == pkcommSuccess);
      REQUIRE(pkcommAllGather(at + i * 4000, at, 1000, pkcommInt32, comms[i], streams[i]) == pkcommSuccess);
    }
    REQUIRE(pkcommGroupEnd() == pkcommSuccess);
    int current = -1;
    REQUIRE(cudaGetDevice(&current) == cudaSuccess);
    REQUIRE(current == round % device_count());
    const std::int32_t wanted = nranks * round + nranks * (nranks - 1) / 2;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      Visible<std::int32_t> got(x.size());
      copy_on(streams[i], got.data(), blocks[i].data(), got.size() * 4);
      REQUIRE(finish(comms[i], streams[i]).result == pkcommSuccess);
      REQUIRE(got == Visible<std::int32_t>(x.size(), wanted));
    }
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    CHECK(pkcommCommDestroy(comms[i]) == pkcommSuccess);
    CHECK(cudaStreamDestroy(streams[i]) == cudaSuccess);
  }
}

TEST_CASE("no call changes the caller's current device, nor whether it captures", "[gpu][device]") {
  const int nranks = gpu_ranks();
  pkcommUniqueId id;
  REQUIRE(pkcommGetUniqueId(&id) == pkcommSuccess);
  Failures failures;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nranks; ++rank) {
    threads.emplace_back([&, rank] {
      const int own = device_of(rank), other = (own + 1) % device_count();
      use_device(own);
      Rank self(rank, nranks, nullptr, nullptr, failures);
      cudaStream_t stream = nullptr;
      succeeds(self, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
      DeviceBlock block(8192);
      succeeds(self, cudaSetDevice(other), "cudaSetDevice");
      const auto watch = [&](const char* call, pkcommResult_t result, pkcommResult_t wanted) {
        self.expect(result == wanted, std::string(call) + ": " + pkcommGetErrorString(result) + ": " +
                                          pkcommGetLastError(nullptr));
        int current = -1;
        succeeds(self, cudaGetDevice(&current), "cudaGetDevice");
        self.expect(current == other,
                    std::string(call) + " made device " + std::to_string(current) + " current");
        cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
        succeeds(self, cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
        self.expect(mode == cudaStreamCaptureModeGlobal,
                    std::string(call) + " changed the thread's capture mode");
      };
      std::byte* const x = block.data();
      pkcommConfig_t config = limited_config();
      pkcommComm_t comm = nullptr, part = nullptr;
      config.device = device_count();
      watch("init on no device", pkcommCommInitRankConfig(&comm, nranks, id, rank, &config),
            pkcommInvalidArgument);
      config.device = own;
      watch("init", pkcommCommInitRankConfig(&comm, nranks, id, rank, &config), pkcommSuccess);
      watch("all_reduce", pkcommAllReduce(x, x, 100, pkcommInt32, pkcommSum, comm, stream), pkcommSuccess);
      watch("bad all_reduce", pkcommAllReduce(nullptr, x, 100, pkcommInt32, pkcommSum, comm, stream),
            pkcommInvalidArgument);
      watch("barrier", pkcommBarrier(comm, stream), pkcommSuccess);
      watch("split", pkcommCommSplit(comm, 0, rank, &part, nullptr), pkcommSuccess);
      void *heap = nullptr, *there = nullptr;
      watch("heap", pkcommHeapAlloc(comm, 1 << 20, &heap), pkcommSuccess);
      watch("peer pointer", pkcommHeapPeerPointer(comm, heap, (rank + 1) % nranks, &there), pkcommSuccess);
      pkcommWindow_t window = nullptr;
      watch("register", pkcommWindowRegister(comm, heap, 4096, &window), pkcommSuccess);
      watch("put", pkcommPut(x, heap, 4096, (rank + 1) % nranks, comm, stream), pkcommSuccess);
      watch("signal", pkcommSignal((rank + 1) % nranks, 0, comm, stream), pkcommSuccess);
      watch("wait", pkcommWaitSignal((rank + nranks - 1) % nranks, 0, 1, comm, stream), pkcommSuccess);
      watch("group start", pkcommGroupStart(), pkcommSuccess);
      watch("send", pkcommSend(x, 100, pkcommInt32, (rank + 1) % nranks, comm, stream), pkcommSuccess);
      watch("recv", pkcommRecv(x + 4096, 100, pkcommInt32, (rank + nranks - 1) % nranks, comm, stream),
            pkcommSuccess);
      watch("group end", pkcommGroupEnd(), pkcommSuccess);
      watch("synchronize", pkcommStreamSynchronize(stream), pkcommSuccess);
      watch("deregister", pkcommWindowDeregister(comm, window), pkcommSuccess);
      watch("free", pkcommHeapFree(comm, heap), pkcommSuccess);
      watch("free twice", pkcommHeapFree(comm, heap), pkcommInvalidArgument);
      watch("abort", pkcommCommAbort(part), pkcommSuccess);
      watch("finalize", pkcommCommFinalize(comm), pkcommSuccess);
      watch("destroy", pkcommCommDestroy(comm), pkcommSuccess);
      succeeds(self, cudaStreamDestroy(stream), "cudaStreamDestroy");
    });
  }
  for (std::thread& thread : threads) thread.join();
  INFO(failures.text());
  CHECK(failures.text().empty());
}
