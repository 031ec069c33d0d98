// Sends, receives, groups of them, all_to_all_v, and the one-sided calls.
#include <string>
#include <vector>

#include "support/memory.hpp"

using namespace pkcomm::test;

namespace {

std::uint32_t payload(int from, int to, std::size_t k) {
  return static_cast<std::uint32_t>(from) * 100000007u + static_cast<std::uint32_t>(to) * 1000003u +
         static_cast<std::uint32_t>(k) * 7u;
}

Visible<std::uint32_t> message(int from, int to, std::size_t count) {
  Visible<std::uint32_t> words(count);
  for (std::size_t k = 0; k < count; ++k) words[k] = payload(from, to, k);
  return words;
}

/// Elements from rank i to rank j of an irregular all-to-all.
std::size_t count_between(int from, int to, std::size_t scale) {
  return static_cast<std::size_t>((from * 3 + to * 5 + from * to) % 7) * scale;
}

}  // namespace

TEST_CASE("a group's sends and receives do not wait for each other", "[conformance]") {
  const int nranks = GENERATE(2, 3, 5);
  const std::size_t count =
      GENERATE(as<std::size_t>{}, 1, 1000, 300001);  // below, within and beyond a pair's ring
  CAPTURE(nranks, count);
  run_world(nranks, [&](Rank& self) {
    std::vector<Visible<std::uint32_t>> out, in;
    for (int peer = 0; peer < self.nranks; ++peer) {
      out.push_back(message(self.rank, peer, count));
      in.emplace_back(count, 0xA5A5A5A5u);
    }
    self.ok(pkcommGroupStart(), "group start");
    for (int peer = 0; peer < self.nranks; ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      self.ok(pkcommSend(out[i].data(), count, pkcommUint32, peer, self.comm, self.stream), "send");
      self.ok(pkcommRecv(in[i].data(), count, pkcommUint32, peer, self.comm, self.stream), "recv");
    }
    self.ok(pkcommGroupEnd(), "group end");
    self.synchronize("group");
    for (int peer = 0; peer < self.nranks; ++peer) {
      self.expect(in[static_cast<std::size_t>(peer)] == message(peer, self.rank, count),
                  "the message from rank " + std::to_string(peer) + " is wrong");
    }
  });
}

TEST_CASE("messages of a pair match in the order of their calls", "[conformance]") {
  run_world(2, [](Rank& self) {
    constexpr int kMessages = 100;
    for (int i = 0; i < kMessages; ++i) {
      Visible<std::uint32_t> words(static_cast<std::size_t>(i % 17 + 1), static_cast<std::uint32_t>(i));
      if (self.rank == 0) {
        self.ok(pkcommSend(words.data(), words.size(), pkcommUint32, 1, self.comm, self.stream), "send");
        self.synchronize("send");
      } else {
        Visible<std::uint32_t> got(words.size());
        self.ok(pkcommRecv(got.data(), got.size(), pkcommUint32, 0, self.comm, self.stream), "recv");
        self.synchronize("recv");
        self.expect(got == words, "message " + std::to_string(i) + " is wrong");
      }
    }
  });
}

TEST_CASE("all_to_all_v gives every pair its own count", "[conformance]") {
  const int nranks = GENERATE(1, 2, 4, 7);
  const std::size_t scale = GENERATE(as<std::size_t>{}, 1, 20011);
  CAPTURE(nranks, scale);
  run_world(nranks, [&](Rank& self) {
    for (int round = 0; round < 3; ++round) {
      const auto n = static_cast<std::size_t>(self.nranks);
      std::vector<std::size_t> send_counts(n), send_displs(n), recv_counts(n), recv_displs(n);
      Visible<std::uint32_t> send, wanted;
      for (int peer = 0; peer < self.nranks; ++peer) {
        const auto i = static_cast<std::size_t>(peer);
        send_counts[i] = count_between(self.rank, peer, scale);
        recv_counts[i] = count_between(peer, self.rank, scale);
        send_displs[i] = send.size();
        recv_displs[i] = wanted.size();
        const auto out = message(self.rank, peer, send_counts[i]);
        const auto in = message(peer, self.rank, recv_counts[i]);
        send.insert(send.end(), out.begin(), out.end());
        wanted.insert(wanted.end(), in.begin(), in.end());
      }
      send.push_back(0);  // so that no buffer is empty
      Visible<std::uint32_t> recv(wanted.size() + 1, 0xA5A5A5A5u);
      wanted.push_back(0xA5A5A5A5u);
      self.ok(pkcommAllToAllV(send.data(), send_counts.data(), send_displs.data(), recv.data(),
                              recv_counts.data(), recv_displs.data(), pkcommUint32, self.comm, self.stream),
              "all_to_all_v");
      self.synchronize("all_to_all_v");
      self.expect(recv == wanted, "the blocks are wrong");
    }
  });
}

TEST_CASE("a put is visible behind the signal that follows it", "[conformance]") {
  const int nranks = GENERATE(2, 4);
  run_world(nranks, [](Rank& self) {
    constexpr std::size_t kCount = 5000;
    void* heap = nullptr;
    const auto n = static_cast<std::size_t>(self.nranks);
    if (!self.ok(pkcommHeapAlloc(self.comm, n * kCount * 4, &heap), "heap")) return;
    auto* const words = static_cast<std::uint32_t*>(heap);  // an address for calls alone
    Visible<std::uint32_t> got(n * kCount);
    for (int round = 0; round < 20; ++round) {
      for (int step = 1; step <= self.nranks; ++step) {
        const int peer = (self.rank + step) % self.nranks;
        const auto out = message(self.rank + round, peer, kCount);
        self.ok(pkcommPut(out.data(), words + static_cast<std::size_t>(self.rank) * kCount, kCount * 4, peer,
                          self.comm, self.stream),
                "put");
        self.ok(pkcommSignal(peer, 3, self.comm, self.stream), "signal");
        self.synchronize("put");
      }
      for (int peer = 0; peer < self.nranks; ++peer) {
        const std::size_t begin = static_cast<std::size_t>(peer) * kCount;
        self.ok(pkcommWaitSignal(peer, 3, 1, self.comm, self.stream), "wait");
        copy_on(self.stream, &got[begin], words + begin, kCount * 4);
        self.synchronize("wait");
        const auto in = message(peer + round, self.rank, kCount);
        self.expect(std::equal(in.begin(), in.end(), &got[begin]),
                    "what rank " + std::to_string(peer) + " put is wrong");
      }
      // Nobody puts the next round's words before all have read these.
      self.ok(pkcommBarrier(self.comm, self.stream), "barrier");
      self.synchronize("barrier");
    }
  });
}

TEST_CASE("a peer's pointer leads to the peer's memory", "[conformance]") {
  run_world(3, [](Rank& self) {
    void* heap = nullptr;
    if (!self.ok(pkcommHeapAlloc(self.comm, 4096, &heap), "heap")) return;
    write_at(self, static_cast<int*>(heap) + 10, Visible<int>{1000 + self.rank});
    self.ok(pkcommBarrier(self.comm, self.stream), "barrier");
    self.synchronize("barrier");
    for (int peer = 0; peer < self.nranks; ++peer) {
      void* there = nullptr;
      self.ok(pkcommHeapPeerPointer(self.comm, static_cast<int*>(heap) + 10, peer, &there), "peer pointer");
      self.expect(read_at<int>(self, there) == 1000 + peer,
                  "the word of rank " + std::to_string(peer) + " is wrong");
    }
    self.ok(pkcommBarrier(self.comm, self.stream), "barrier");
    self.synchronize("barrier");
    void* multicast = nullptr;
    self.fails(pkcommHeapMulticastPointer(self.comm, heap, &multicast), pkcommUnsupported, "multicast is off",
               "multicast pointer");
    pkcommWindow_t window = nullptr;
    self.ok(pkcommWindowRegister(self.comm, heap, 4096, &window), "register");
    self.expect(window != nullptr, "success without a window");
    self.ok(pkcommWindowDeregister(self.comm, window), "deregister");
    self.fails(pkcommWindowDeregister(self.comm, window), pkcommInvalidArgument, "no live window", "twice");
  });
}

TEST_CASE("a pre-multiplied sum takes each rank's own scalar", "[conformance]") {
  const std::string algorithm = GENERATE("one_shot_ll", "two_shot_ll", "direct_ldst");
  const Environment environment({{"PKCOMM_ALGORITHM", algorithm}});
  CAPTURE(algorithm);
  run_world(3, [](Rank& self) {
    for (const bool device : {false, true}) {
      const Visible<float> scalar{static_cast<float>(self.rank + 1)};
      pkcommRedOp_t op;
      if (!self.ok(
              pkcommRedOpCreatePreMulSum(&op, scalar.data(), pkcommFloat32,
                                         device ? pkcommScalarDevice : pkcommScalarHostImmediate, self.comm),
              "create")) {
        return;
      }
      Visible<float> send(1000), recv(1000);
      for (std::size_t i = 0; i < send.size(); ++i)
        send[i] = static_cast<float>(i % 13 + static_cast<std::size_t>(self.rank));
      self.ok(
          pkcommAllReduce(send.data(), recv.data(), send.size(), pkcommFloat32, op, self.comm, self.stream),
          "call");
      self.synchronize("call");
      for (std::size_t i = 0; i < recv.size(); ++i) {
        float wanted = 0;
        for (int rank = 0; rank < 3; ++rank) {
          wanted +=
              static_cast<float>(rank + 1) * static_cast<float>(i % 13 + static_cast<std::size_t>(rank));
        }
        if (!self.expect(recv[i] == wanted, "element " + std::to_string(i))) break;
      }
      self.ok(pkcommRedOpDestroy(op, self.comm), "destroy");
      self.fails(pkcommRedOpDestroy(op, self.comm), pkcommInvalidArgument, "op is", "twice");
    }
  });
}
