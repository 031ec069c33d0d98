// Sizes and counts: nothing at all, nothing for some pairs, more than an int holds, and no multiple of anything.
#include <algorithm>
#include <deque>
#include <fstream>

#include "integration/cases.hpp"

using namespace pkcomm::test;

namespace {

/// Memory that can be had now, by the machine's account and by the control group's.
std::uint64_t available_bytes() {
  std::uint64_t available = UINT64_MAX;
  std::ifstream machine("/proc/meminfo");
  for (std::string word; machine >> word;) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && machine >> kib) available = kib * 1024;
  }
  std::uint64_t most = 0, used = 0;
  if ((std::ifstream("/sys/fs/cgroup/memory.max") >> most) &&
      (std::ifstream("/sys/fs/cgroup/memory.current") >> used)) {
    available = std::min(available, most > used ? most - used : 0);
  }
  return available;
}

bool has_memory_for(const char* what, std::uint64_t bytes) {
  if (available_bytes() >= bytes) return true;
  WARN(std::string(what) << " is left out: it needs " << bytes << " bytes of memory, available are "
                         << available_bytes());
  return false;
}

/// Index of the first byte that is not `value`, or -1.
std::ptrdiff_t first_other_byte(const unsigned char* at, std::size_t bytes, unsigned char value) {
  if (bytes == 0 || (at[0] == value && std::memcmp(at, at + 1, bytes - 1) == 0)) return -1;
  return std::find_if(at, at + bytes, [value](unsigned char byte) { return byte != value; }) - at;
}

}  // namespace

TEST_CASE("C01 count 0 succeeds, with and without buffers, and touches nothing", "[integration][C01]") {
  const std::string algorithm = GENERATE(from_range(algorithms()));
  CAPTURE(algorithm);
  const Environment environment = forced(algorithm);
  run_world(4, [&](Rank& self) {
    const Place place = algorithm == "multimem_emulated" ? Place::kSymmetric : Place::kDevice;
    Memory send(self, place, 64, 4), recv(self, place, 64, 4);
    const int next = (self.rank + 1) % 4, previous = (self.rank + 3) % 4;
    for (const bool null : {false, true}) {
      const void* const from = null ? nullptr : send.at();
      void* const to = null ? nullptr : recv.at();
      const std::string with = null ? " with null" : "";
      self.ok(pkcommAllReduce(from, to, 0, pkcommInt32, pkcommSum, self.comm, self.stream),
              "all_reduce" + with);
      self.ok(pkcommAllGather(from, to, 0, pkcommInt32, self.comm, self.stream), "all_gather" + with);
      self.ok(pkcommReduceScatter(from, to, 0, pkcommInt32, pkcommSum, self.comm, self.stream),
              "reduce_scatter" + with);
      self.ok(pkcommBroadcast(from, to, 0, pkcommInt32, 2, self.comm, self.stream), "broadcast" + with);
      self.ok(pkcommReduce(from, to, 0, pkcommInt32, pkcommSum, 2, self.comm, self.stream), "reduce" + with);
      self.ok(pkcommAllToAll(from, to, 0, pkcommInt32, self.comm, self.stream), "all_to_all" + with);
      self.ok(pkcommGather(from, to, 0, pkcommInt32, 2, self.comm, self.stream), "gather" + with);
      self.ok(pkcommScatter(from, to, 0, pkcommInt32, 2, self.comm, self.stream), "scatter" + with);
      self.ok(pkcommSend(from, 0, pkcommInt32, next, self.comm, self.stream), "send" + with);
      self.ok(pkcommRecv(to, 0, pkcommInt32, previous, self.comm, self.stream), "recv" + with);
      send.download();
      recv.download();
      self.synchronize("nothing" + with);
    }
    self.expect(send.guards_intact(0) && recv.guards_intact(0), "a call of nothing wrote something");
    Visible<std::int32_t> sum{self.rank + 1};
    self.ok(pkcommAllReduce(sum.data(), sum.data(), 1, pkcommInt32, pkcommSum, self.comm, self.stream),
            "sum");
    self.synchronize("sum");
    self.expect(sum[0] == 10, "the sum is " + std::to_string(sum[0]));
  });
}

TEST_CASE("C02 grouped sends and receives of which some are empty or left out", "[integration][C02]") {
  constexpr std::size_t kCounts[4][4] = {{0, 1, 2, 0}, {1, 0, 0, 1}, {2, 0, 0, 2}, {0, 1, 2, 0}};
  const bool skip_empty = GENERATE(false, true);
  CAPTURE(skip_empty);
  run_world(4, [&](Rank& self) {
    const auto me = static_cast<std::size_t>(self.rank);
    for (int round = 0; round < 1000; ++round) {
      std::vector<Visible<std::int32_t>> out;
      std::deque<Memory> in;
      for (int peer = 0; peer < 4; ++peer) {
        out.emplace_back(2, 100 * self.rank + peer);
        in.emplace_back(self, Place::kVisible, kCounts[peer][me] * 4, 4);
      }
      bool ok = self.ok(pkcommGroupStart(), "group start");
      for (std::size_t peer = 0; peer < 4; ++peer) {
        const int rank = static_cast<int>(peer);
        if (!skip_empty || kCounts[me][peer] > 0) {
          ok = ok && self.ok(pkcommSend(out[peer].data(), kCounts[me][peer], pkcommInt32, rank, self.comm,
                                        self.stream),
                             "send");
        }
        if (!skip_empty || kCounts[peer][me] > 0) {
          ok = ok && self.ok(pkcommRecv(in[peer].at(), kCounts[peer][me], pkcommInt32, rank, self.comm,
                                        self.stream),
                             "recv");
        }
      }
      ok = self.ok(pkcommGroupEnd(), "group end") && ok;
      if (!ok || !self.synchronize("group")) return;
      for (std::size_t peer = 0; peer < 4; ++peer) {
        const auto wanted = static_cast<std::uint64_t>(100 * static_cast<int>(peer) + self.rank);
        const bool right = first_other(in[peer].host(), pkcommInt32, wanted, kCounts[peer][me]) < 0;
        if (!self.expect(right && in[peer].guards_intact(), "round " + std::to_string(round) +
                                                                ": what rank " + std::to_string(peer) +
                                                                " sent is wrong")) {
          return;
        }
      }
    }
  });
}

TEST_CASE("C03 (a) an all_reduce in place of more than 2^31 bytes", "[integration][C03][slow]") {
  constexpr std::size_t kCount = 2147483651;
  if (!has_memory_for("C03 (a)", 2 * kCount + (1ull << 30))) return;
  reserve_visible(2 * kCount + 4096);
  run_world(2, [](Rank& self) {
    Visible<unsigned char> bytes(kCount, static_cast<unsigned char>(self.rank + 1));
    self.ok(
        pkcommAllReduce(bytes.data(), bytes.data(), kCount, pkcommUint8, pkcommSum, self.comm, self.stream),
        "call");
    self.synchronize("call");
    for (const std::size_t at : {2147483647ul, 2147483648ul, 2147483650ul}) {
      self.expect(bytes[at] == 3, "byte " + std::to_string(at) + " is " + std::to_string(bytes[at]));
    }
    const std::ptrdiff_t wrong = first_other_byte(bytes.data(), kCount, 3);
    self.expect(wrong < 0, "byte " + std::to_string(wrong) + " is wrong");
  });
}

TEST_CASE("C03 (b) an all_reduce of 64-bit elements of more than 2^31 bytes", "[integration][C03][slow]") {
  constexpr std::size_t kCount = 268435457;
  if (!has_memory_for("C03 (b)", 2 * kCount * 8 + (1ull << 30))) return;
  reserve_visible(2 * kCount * 8 + 4096);
  run_world(2, [](Rank& self) {
    Visible<std::int64_t> words(kCount, self.rank == 0 ? std::int64_t{1} << 33 : 5);
    self.ok(
        pkcommAllReduce(words.data(), words.data(), kCount, pkcommInt64, pkcommSum, self.comm, self.stream),
        "call");
    self.synchronize("call");
    const auto wrong =
        std::find_if(words.begin(), words.end(), [](std::int64_t word) { return word != 8589934597; });
    self.expect(wrong == words.end(), "element " + std::to_string(wrong - words.begin()) + " is wrong");
  });
}

TEST_CASE("C03 (c) an all_gather whose output alone exceeds 2^31 bytes", "[integration][C03][slow]") {
  constexpr std::size_t kCount = 536870913;
  if (!has_memory_for("C03 (c)", 20 * kCount + (1ull << 30))) return;
  reserve_visible(20 * kCount + 4096);
  run_world(4, [](Rank& self) {
    const Visible<unsigned char> send(kCount, static_cast<unsigned char>(self.rank + 1));
    Visible<unsigned char> recv(4 * kCount);
    self.ok(pkcommAllGather(send.data(), recv.data(), kCount, pkcommUint8, self.comm, self.stream), "call");
    self.synchronize("call");
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const std::ptrdiff_t wrong =
          first_other_byte(recv.data() + rank * kCount, kCount, static_cast<unsigned char>(rank + 1));
      self.expect(wrong < 0,
                  "byte " + std::to_string(wrong) + " of rank " + std::to_string(rank) + " is wrong");
    }
    self.expect(recv[2147483651] == 4, "the last byte is " + std::to_string(recv[2147483651]));
  });
}

TEST_CASE("C03 (d) a count whose bytes wrap round to 8 is refused", "[integration][C03]") {
  run_world(2, [](Rank& self) {
    constexpr std::size_t kCount = (std::size_t{1} << 61) + 1;
    Memory send(self, Place::kVisible, 8, 8), recv(self, Place::kVisible, 8, 8);
    const std::string count = std::to_string(kCount);
    self.fails(
        pkcommAllReduce(send.at(), recv.at(), kCount, pkcommFloat64, pkcommSum, self.comm, self.stream),
        pkcommInvalidArgument, count, "all_reduce");
    self.fails(pkcommAllGather(send.at(), recv.at(), kCount, pkcommFloat64, self.comm, self.stream),
               pkcommInvalidArgument, count, "all_gather");
    self.fails(pkcommAllGather(send.at(), recv.at(), kCount / 4, pkcommFloat64, self.comm, self.stream),
               pkcommInvalidArgument, std::to_string(kCount / 4), "all_gather whose whole output wraps");
    self.fails(pkcommSend(send.at(), kCount, pkcommFloat64, 1 - self.rank, self.comm, self.stream),
               pkcommInvalidArgument, count, "send");
    self.synchronize("nothing");
    self.expect(send.guards_intact(0) && recv.guards_intact(0), "a refused call wrote something");
  });
}

TEST_CASE("C04 (a) 8 ranks reduce a large count that is no multiple of anything", "[integration][C04]") {
  constexpr std::size_t kCount = 10556587;
  if (!has_memory_for("C04 (a)", 8 * kCount * 4 + (1ull << 30))) return;
  reserve_visible(8 * (kCount * 4 + 4096));
  run_world(8, [](Rank& self) {
    Memory block(self, Place::kVisible, kCount * 4, 4);
    auto* const x = block.as<float>();
    for (std::size_t i = 0; i < kCount; ++i)
      x[i] = static_cast<float>(i % 7 + static_cast<std::size_t>(self.rank));
    self.ok(pkcommAllReduce(block.at(), block.at(), kCount, pkcommFloat32, pkcommSum, self.comm, self.stream),
            "call");
    self.synchronize("call");
    std::size_t right = 0;
    while (right < kCount && x[right] == static_cast<float>(8 * (right % 7) + 28)) ++right;
    self.expect(right == kCount, "element " + std::to_string(right) + " is wrong");
    self.expect(x[10556586] == 68, "the last element is " + std::to_string(x[10556586]));
    self.expect(block.guards_intact(), "wrote outside the buffer");
  });
}

TEST_CASE("C04 (b) every small count, and odd numbers of ranks", "[integration][C04]") {
  const int nranks = GENERATE(2, 3, 5, 6, 7);
  const std::string algorithm =
      GENERATE(filter([](const std::string& name) { return !name.empty(); }, from_range(algorithms())));
  CAPTURE(nranks, algorithm);
  const Environment environment = forced(algorithm);
  run_world(nranks, [&](Rank& self) {
    std::vector<std::size_t> counts;
    for (std::size_t count = 1; count <= 300; ++count) counts.push_back(count);
    for (const std::size_t count : {16383u, 16384u, 16385u}) counts.push_back(count);
    const auto n = static_cast<std::uint64_t>(self.nranks);
    for (const pkcommDataType_t type : {pkcommFloat32, pkcommBfloat16, pkcommUint8}) {
      const std::size_t element = bytes_of(type);
      const Place place = algorithm == "multimem_emulated" ? Place::kSymmetric : Place::kDevice;
      Memory send(self, place, 16385 * element, element), recv(self, place, 16385 * element, element);
      std::vector<std::byte> wanted(16385 * element);
      for (std::size_t i = 0; i < 16385; ++i) {
        store(send.host() + i * element, type, i % 7 + static_cast<std::uint64_t>(self.rank));
        store(wanted.data() + i * element, type, n * (i % 7) + n * (n - 1) / 2);
      }
      send.upload();
      for (const std::size_t count : counts) {
        recv.fill(Memory::kPoison);
        const std::string what = "type " + std::to_string(type) + " count " + std::to_string(count);
        if (!self.ok(pkcommAllReduce(send.at(), recv.at(), count, type, pkcommSum, self.comm, self.stream),
                     what))
          return;
        recv.download();
        if (!self.synchronize(what)) return;
        const std::ptrdiff_t wrong = first_difference(recv.host(), wanted.data(), count, element);
        self.expect(wrong < 0, what + ": element " + std::to_string(wrong) + " is wrong");
        self.expect(recv.guards_intact(count * element), what + ": wrote outside the output");
      }
    }
  });
}
