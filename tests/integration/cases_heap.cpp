// Symmetric memory: ranks that ask for different things, windows that cannot be, limits and odd requests.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "integration/cases.hpp"

using namespace pkcomm::test;

namespace {

constexpr std::size_t kMiB = 1 << 20;

/// Deadlines of collective allocation that are short.
pkcommConfig_t short_allocations() {
  pkcommConfig_t config = short_config();
  config.init_timeout_ms = 2000;
  return config;
}

/// An address for calls alone.
std::byte* allocate(Rank& self, std::size_t bytes) {
  void* at = nullptr;
  self.ok(pkcommHeapAlloc(self.comm, bytes, &at), "allocation of " + std::to_string(bytes));
  return static_cast<std::byte*>(at);
}

void barrier(Rank& self) {
  self.ok(pkcommBarrier(self.comm, self.stream), "barrier");
  self.synchronize("barrier");
}

std::byte* peer_pointer(Rank& self, const std::byte* at, int peer) {
  void* there = nullptr;
  self.ok(pkcommHeapPeerPointer(self.comm, at, peer, &there), "peer pointer");
  return static_cast<std::byte*>(there);
}

/// An all_reduce of `count` ones at an address; afterwards everything still works.
void expect_sum(Rank& self, void* at, std::size_t count, const std::string& what) {
  Visible<float> x(count, 1.0f);
  copy_on(self.stream, at, x.data(), count * 4);
  self.ok(pkcommAllReduce(at, at, count, pkcommFloat32, pkcommSum, self.comm, self.stream), what);
  copy_on(self.stream, x.data(), at, count * 4);
  self.synchronize(what);
  const auto wanted = static_cast<float>(self.nranks);
  const auto wrong = std::find_if(x.begin(), x.end(), [wanted](float got) { return got != wanted; });
  self.expect(wrong == x.end(), what + ": element " + std::to_string(wrong - x.begin()) + " is wrong");
}

Visible<std::byte> bytes_at(Rank& self, const std::byte* at, std::size_t count) {
  Visible<std::byte> bytes(count);
  copy_on(self.stream, bytes.data(), at, count);
  self.synchronize("read");
  return bytes;
}

}  // namespace

TEST_CASE("C53 (a) allocations of different sizes are an error on all ranks", "[integration][C53]") {
  run_world(2, [](Rank& self) {
    void* at = &self;
    const pkcommResult_t result = pkcommHeapAlloc(self.comm, self.rank == 0 ? kMiB : 2 * kMiB, &at);
    const std::string text = pkcommGetLastError(nullptr);
    self.expect(result == pkcommInvalidUsage, std::string(pkcommGetErrorString(result)) + ": " + text);
    self.expect(text.find("1048576") != std::string::npos && text.find("2097152") != std::string::npos,
                "both sizes are not in: " + text);
    self.expect(at == nullptr, "a failed allocation gives a pointer");
    expect_sum(self, allocate(self, 4000), 1000, "afterwards");
  });
}

TEST_CASE("C53 (b) blocks pair up in the order of the calls", "[integration][C53]") {
  run_world(2, [](Rank& self) {
    // Rank 0 calls its first block A, rank 1 its second.
    std::byte* const first = allocate(self, 4096);
    std::byte* const second = allocate(self, 4096);
    write_at(self, first, Visible<char>(4096, self.rank == 0 ? 'A' : 'B'));
    write_at(self, second, Visible<char>(4096, self.rank == 0 ? 'B' : 'A'));
    barrier(self);
    const auto theirs = bytes_at(self, peer_pointer(self, first, 1 - self.rank), 4096);
    self.expect(theirs[0] == std::byte(self.rank == 0 ? 'B' : 'A') && theirs[4095] == theirs[0],
                "the peer's first block has other contents");
    barrier(self);
    // Of different sizes: rank 0 A then B, rank 1 B then A.
    void* at = nullptr;
    self.fails(pkcommHeapAlloc(self.comm, self.rank == 0 ? 1000 : 3000, &at), pkcommInvalidUsage, "3000",
               "A or B");
    self.fails(pkcommHeapAlloc(self.comm, self.rank == 0 ? 3000 : 1000, &at), pkcommInvalidUsage, "1000",
               "B or A");
    expect_sum(self, allocate(self, 4000), 1000, "afterwards");
  });
}

TEST_CASE("C53 (c) who frees and allocates alone fails, and so does the next allocation of all",
          "[integration][C53]") {
  std::atomic<bool> over{false};
  run_world(
      2,
      [&](Rank& self) {
        std::byte* const block = allocate(self, 4096);
        void* at = nullptr;
        if (self.rank == 0) {
          self.ok(pkcommHeapFree(self.comm, block), "free");
          self.fails(pkcommHeapAlloc(self.comm, 4096, &at), pkcommTimeout, "rank 1",
                     "allocation of one rank alone");
          self.expect(at == nullptr, "a failed allocation gives a pointer");
          over.store(true);
        } else {
          while (!over.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        self.expect(pkcommHeapAlloc(self.comm, 4096, &at) != pkcommSuccess && at == nullptr,
                    "an allocation after one that failed on one rank succeeds");
      },
      short_allocations());
  run_world(
      2,
      [](Rank& self) {
        std::byte* const block = allocate(self, 4096);
        if (self.rank == 0) self.ok(pkcommHeapFree(self.comm, block), "free");
        void* at = nullptr;
        self.fails(pkcommHeapAlloc(self.comm, 4096, &at), pkcommInvalidUsage,
                   "allocated or freed different blocks", "allocation after a free of one rank");
      },
      short_allocations());
}

TEST_CASE("C53 (d) windows of different sizes are an error on all ranks", "[integration][C53]") {
  run_world(2, [](Rank& self) {
    std::byte* const block = allocate(self, 8192);
    pkcommWindow_t window = nullptr;
    const pkcommResult_t result =
        pkcommWindowRegister(self.comm, block, self.rank == 0 ? 4096 : 8192, &window);
    const std::string text = pkcommGetLastError(nullptr);
    self.expect(result == pkcommInvalidUsage, std::string(pkcommGetErrorString(result)) + ": " + text);
    self.expect(text.find("4096") != std::string::npos && text.find("8192") != std::string::npos,
                "both sizes are not in: " + text);
    self.expect(window == nullptr, "a failed registration gives a window");
    self.fails(pkcommWindowRegister(self.comm, block + 256 * self.rank, 4096, &window), pkcommInvalidUsage,
               "offset", "windows at different offsets");
    self.expect(window == nullptr, "a failed registration gives a window");
    expect_sum(self, block, 1000, "afterwards");
  });
}

TEST_CASE("C53 (e) buffers at different offsets of a window are an error on all ranks",
          "[integration][C53]") {
  const std::string algorithm = GENERATE(from_range(algorithms()));
  const bool one_is_private = GENERATE(false, true);
  CAPTURE(algorithm, one_is_private);
  const Environment environment = forced(algorithm);
  run_world(
      2,
      [&](Rank& self) {
        Memory block(self, Place::kSymmetric, 8192, 4);
        Memory other(self, Place::kVisible, 8192, 4);
        pkcommWindow_t window = nullptr;
        self.ok(pkcommWindowRegister(self.comm, block.at(), 8192, &window), "register");
        Memory& given = self.rank == 1 && one_is_private ? other : block;
        const std::size_t first = one_is_private ? 0 : 64 * static_cast<std::size_t>(self.rank);
        std::fill_n(given.as<float>() + first, 100, 1.0f);
        given.upload();
        void* const at = given.at(first * 4);
        const pkcommResult_t called =
            pkcommAllReduce(at, at, 100, pkcommFloat32, pkcommSum, self.comm, self.stream);
        self.fails_to_finish(called, pkcommMismatch, "other symmetric memory", "call");
        block.download();
        self.ok(pkcommStreamSynchronize(self.stream), "download");
        self.expect(block.guards_intact() && other.guards_intact(), "wrote outside the buffers");
        self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort");
      },
      short_config());
}

TEST_CASE("C54 what cannot be a window is refused, and works without one", "[integration][C54]") {
  run_world(2, [](Rank& self) {
    Memory plain(self, Place::kVisible, 4000, 4);
    pkcommWindow_t window = nullptr;
    self.fails(pkcommWindowRegister(self.comm, plain.at(), 4000, &window), pkcommUnsupported,
               "symmetric heap", "window of private memory");
    self.expect(window == nullptr, "a failed registration gives a window");

    // One rank that has symmetric memory does not make it work.
    std::byte* const block = allocate(self, 4000);
    self.fails(pkcommWindowRegister(self.comm, self.rank == 0 ? block : plain.at(), 4000, &window),
               pkcommUnsupported, "rank 1", "window of which one part is private");
    self.expect(window == nullptr, "a failed registration gives a window");

    void* out = nullptr;
    self.fails(pkcommHeapPeerPointer(self.comm, plain.at(), 1 - self.rank, &out), pkcommInvalidArgument,
               "heap", "peer pointer of private memory");
    self.fails(pkcommHeapMulticastPointer(self.comm, block, &out), pkcommUnsupported, "multicast is off",
               "multicast");
    pkcommCommProperties_t properties{};
    properties.size = sizeof properties;
    self.ok(pkcommCommGetProperties(self.comm, &properties), "properties");
    self.expect(properties.multicast == 0 && properties.multicast_reason[0] != '\0',
                "multicast is off for no reason");

    expect_sum(self, plain.at(), 1000, "all_reduce of private memory");
    self.expect(plain.guards_intact(), "wrote outside the buffer");
    if (self.ok(pkcommWindowRegister(self.comm, block, 4000, &window), "register") &&
        self.expect(window != nullptr, "success without a window")) {
      expect_sum(self, block, 1000, "all_reduce of a window");
      self.ok(pkcommWindowDeregister(self.comm, window), "deregister");
    }
  });
}

TEST_CASE("C55 limits and odd requests of the symmetric heap", "[integration][C55]") {
  const Environment environment = variable("PKCOMM_HEAP_SIZE", "1M");
  run_world(2, [](Rank& self) {
    void* at = &self;
    self.ok(pkcommHeapAlloc(self.comm, 0, &at), "nothing");
    self.expect(at == nullptr, "0 bytes give a pointer");
    self.ok(pkcommHeapFree(self.comm, nullptr), "free of nothing");
    pkcommCommProperties_t properties{};
    properties.size = sizeof properties;
    self.ok(pkcommCommGetProperties(self.comm, &properties), "properties");
    self.expect(properties.heap_limit_bytes == kMiB,
                "the limit is " + std::to_string(properties.heap_limit_bytes));

    const auto refused = [&](std::size_t bytes) {
      const std::string what = "allocation of " + std::to_string(bytes);
      at = &self;
      self.fails(pkcommHeapAlloc(self.comm, bytes, &at), pkcommOutOfMemory, std::to_string(bytes), what);
      self.expect(std::string(pkcommGetLastError(self.comm)).find("1048576") != std::string::npos,
                  what + ": no limit");
      self.expect(at == nullptr, what + ": a pointer");
    };
    refused(kMiB + 1);
    refused(~std::size_t{0});
    refused(~std::size_t{0} / 2);
    std::byte* const all = allocate(self, kMiB);
    if (all == nullptr) return;
    expect_sum(self, all, kMiB / 4, "all of the heap");
    refused(1);
    self.fails(pkcommHeapFree(self.comm, all + 1), pkcommInvalidArgument, "not the start",
               "free of a middle pointer");
    self.fails(pkcommHeapFree(self.comm, all + 256), pkcommInvalidArgument, "not the start",
               "free of a middle pointer");
    self.fails(pkcommHeapFree(self.comm, &self), pkcommInvalidArgument, "not the start",
               "free of foreign memory");
    self.ok(pkcommHeapFree(self.comm, all), "free");
    self.fails(pkcommHeapFree(self.comm, all), pkcommInvalidArgument, "freed before", "free twice");

    std::vector<std::byte*> blocks;
    Visible<std::byte> numbers(1000);
    for (int i = 0; i < 1000; ++i) {
      blocks.push_back(allocate(self, 1));
      if (!self.expect(reinterpret_cast<std::uintptr_t>(blocks.back()) % 256 == 0,
                       "not aligned to 256 bytes"))
        return;
      numbers[static_cast<std::size_t>(i)] = static_cast<std::byte>(i % 251);
      copy_on(self.stream, blocks.back(), &numbers[static_cast<std::size_t>(i)], 1);
    }
    Visible<std::byte> found(1000);
    for (std::size_t i = 0; i < 1000; ++i) copy_on(self.stream, &found[i], blocks[i], 1);
    self.synchronize("copies");
    self.expect(found == numbers, "blocks overlap");
    barrier(self);
    for (int i = 0; i < 1000; i += 97) {
      const std::byte* const theirs = peer_pointer(self, blocks[static_cast<std::size_t>(i)], 1 - self.rank);
      self.expect(read_at<std::byte>(self, theirs) == static_cast<std::byte>(i % 251),
                  "the peer's block " + std::to_string(i) + " is another");
    }
    barrier(self);
    for (std::byte* const block : blocks) self.ok(pkcommHeapFree(self.comm, block), "free");
    self.ok(pkcommCommGetProperties(self.comm, &properties), "properties");
    self.expect(properties.heap_bytes == 0,
                "after all was freed, in use are " + std::to_string(properties.heap_bytes));
  });
}

TEST_CASE("C55 a fragmented heap refuses on all ranks what fits nowhere, and recovers",
          "[integration][C55]") {
  const Environment environment = variable("PKCOMM_HEAP_SIZE", "1M");
  run_world(2, [](Rank& self) {
    constexpr std::size_t kBlocks = 64, kBytes = kMiB / kBlocks;
    std::vector<std::byte*> blocks;
    for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(allocate(self, kBytes));
    for (std::size_t i = 0; i < kBlocks; i += 2)
      self.ok(pkcommHeapFree(self.comm, blocks[i]), "free of every second");
    void* at = nullptr;
    self.fails(pkcommHeapAlloc(self.comm, kMiB / 2, &at), pkcommOutOfMemory, "524288",
               "half of it, in pieces");
    // One block fits into each gap.
    blocks[0] = allocate(self, kBytes);
    expect_sum(self, blocks[0], kBytes / 4, "a gap");
    self.ok(pkcommHeapFree(self.comm, blocks[0]), "free");
    for (std::size_t i = 1; i < kBlocks; i += 2)
      self.ok(pkcommHeapFree(self.comm, blocks[i]), "free of the others");
    std::byte* const whole = allocate(self, kMiB);
    if (whole != nullptr) expect_sum(self, whole, kMiB / 4, "all of the heap again");
  });
}

TEST_CASE("C55 one rank that asks for too much fails together with the one that does not",
          "[integration][C55]") {
  const Environment environment = variable("PKCOMM_HEAP_SIZE", "1M");
  run_world(2, [](Rank& self) {
    void* at = nullptr;
    self.fails(pkcommHeapAlloc(self.comm, self.rank == 0 ? 2 * kMiB : kMiB / 2, &at), pkcommInvalidUsage,
               "2097152", "too much on rank 0");
    self.expect(at == nullptr, "a failed allocation gives a pointer");
    expect_sum(self, allocate(self, kMiB / 2), 1000, "afterwards");
  });
}
