// Rules for buffers: what in place means, what is left alone, and who may give none.
#include "integration/cases.hpp"

using namespace pkcomm::test;

TEST_CASE("C05 in-place all_gather means the caller's own block of the output", "[integration][C05]") {
  const std::string algorithm = GENERATE(from_range(algorithms()));
  const Place place = GENERATE(from_range(places()));
  CAPTURE(algorithm, static_cast<int>(place));
  const Environment environment = forced(algorithm);
  run_world(3, [&](Rank& self) {
    Memory block(self, place, 15 * 4, 4);
    auto* const x = block.as<std::int32_t>();
    for (int i = 0; i < 15; ++i) x[i] = i / 5 == self.rank ? 10 * self.rank + i % 5 : -1;
    block.upload();
    self.ok(pkcommAllGather(block.at(static_cast<std::size_t>(self.rank) * 20), block.at(), 5, pkcommInt32,
                            self.comm, self.stream),
            "all_gather");
    block.download();
    self.synchronize("all_gather");
    for (int i = 0; i < 15; ++i) {
      self.expect(x[i] == 10 * (i / 5) + i % 5,
                  "element " + std::to_string(i) + " is " + std::to_string(x[i]));
    }
    self.expect(block.guards_intact(), "wrote outside the buffer");
  });
}

TEST_CASE("C06 in-place reduce_scatter changes the caller's own block alone", "[integration][C06]") {
  const std::string algorithm = GENERATE(from_range(algorithms()));
  const Place place = GENERATE(from_range(places()));
  CAPTURE(algorithm, static_cast<int>(place));
  const Environment environment = forced(algorithm);
  run_world(2, [&](Rank& self) {
    const std::vector<std::int32_t> inputs[] = {{1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60}};
    const std::vector<std::int32_t> in_place[] = {{11, 22, 33, 4, 5, 6}, {10, 20, 30, 44, 55, 66}};
    const std::vector<std::int32_t>& input = inputs[self.rank];
    Memory send(self, place, 24, 4), recv(self, place, 12, 4);
    const auto reset = [&] {
      std::memcpy(send.host(), input.data(), 24);
      send.upload();
    };
    const auto same = [&](const std::vector<std::int32_t>& wanted) {
      return std::memcmp(send.host(), wanted.data(), 24) == 0;
    };

    reset();
    self.ok(pkcommReduceScatter(send.at(), send.at(static_cast<std::size_t>(self.rank) * 12), 3, pkcommInt32,
                                pkcommSum, self.comm, self.stream),
            "in place");
    send.download();
    self.synchronize("in place");
    self.expect(same(in_place[self.rank]), "in place: the buffer is wrong");

    reset();
    self.ok(pkcommReduceScatter(send.at(), recv.at(), 3, pkcommInt32, pkcommSum, self.comm, self.stream),
            "out of place");
    send.download();
    recv.download();
    self.synchronize("out of place");
    self.expect(same(input), "out of place: the input has changed");
    self.expect(std::memcmp(recv.host(), in_place[self.rank].data() + 3 * self.rank, 12) == 0,
                "out of place: the output is wrong");
    self.expect(send.guards_intact() && recv.guards_intact(), "wrote outside the buffers");
  });
}

TEST_CASE("C07 a buffer may be null where it is not needed, and nowhere else", "[integration][C07]") {
  run_world(4, [](Rank& self) {
    Visible<std::int32_t> in(4), out(4);
    const int root = 1;
    const bool is_root = self.rank == root;
    const auto fill = [&] {
      for (int i = 0; i < 4; ++i) {
        in[i] = 10 * self.rank + i;
        out[i] = -1;
      }
    };
    fill();
    self.ok(pkcommReduce(in.data(), is_root ? out.data() : nullptr, 4, pkcommInt32, pkcommSum, root,
                         self.comm, self.stream),
            "reduce");
    self.synchronize("reduce");
    for (int i = 0; i < 4; ++i) {
      self.expect(out[i] == (is_root ? 60 + 4 * i : -1),
                  "reduce: element " + std::to_string(i) + " is wrong");
    }
    fill();
    self.ok(pkcommBroadcast(is_root ? in.data() : nullptr, out.data(), 4, pkcommInt32, root, self.comm,
                            self.stream),
            "broadcast");
    self.synchronize("broadcast");
    for (int i = 0; i < 4; ++i) {
      self.expect(out[i] == 10 * root + i, "broadcast: element " + std::to_string(i) + " is wrong");
      self.expect(in[i] == 10 * self.rank + i, "broadcast: the unused input has changed");
    }
    // What no rank needs elsewhere is not touched either.
    fill();
    self.ok(pkcommReduce(in.data(), out.data(), 4, pkcommInt32, pkcommSum, root, self.comm, self.stream),
            "reduce");
    self.synchronize("reduce");
    if (!is_root)
      self.expect(out[0] == -1 && out[3] == -1,
                  "reduce: wrote into the output of a rank that is not the root");

    fill();
    self.fails(pkcommAllReduce(nullptr, out.data(), 4, pkcommInt32, pkcommSum, self.comm, self.stream),
               pkcommInvalidArgument, "send is null", "all_reduce without send");
    self.fails(pkcommAllReduce(in.data(), nullptr, 4, pkcommInt32, pkcommSum, self.comm, self.stream),
               pkcommInvalidArgument, "recv is null", "all_reduce without recv");
    self.fails(pkcommReduce(nullptr, out.data(), 4, pkcommInt32, pkcommSum, root, self.comm, self.stream),
               pkcommInvalidArgument, "send is null", "reduce without send");
    self.fails(pkcommBroadcast(in.data(), nullptr, 4, pkcommInt32, root, self.comm, self.stream),
               pkcommInvalidArgument, "recv is null", "broadcast without recv");
    if (is_root) {
      self.fails(pkcommReduce(in.data(), nullptr, 4, pkcommInt32, pkcommSum, root, self.comm, self.stream),
                 pkcommInvalidArgument, "recv is null", "reduce without recv on the root");
      self.fails(pkcommBroadcast(nullptr, out.data(), 4, pkcommInt32, root, self.comm, self.stream),
                 pkcommInvalidArgument, "send is null", "broadcast without send on the root");
    }
    self.ok(pkcommAllReduce(in.data(), out.data(), 4, pkcommInt32, pkcommSum, self.comm, self.stream),
            "all_reduce afterwards");
    self.synchronize("all_reduce afterwards");
    self.expect(out[3] == 72, "all_reduce afterwards: the last element is " + std::to_string(out[3]));
  });
}
