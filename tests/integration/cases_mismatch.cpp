// Ranks that disagree, and ranks that die: everybody hears of it in time, with the reason, and nothing is overwritten.
#include <barrier>
#include <filesystem>
#include <set>

#include "integration/cases.hpp"
#include "support/processes.hpp"

using namespace pkcomm::test;

namespace {

using Clock = std::chrono::steady_clock;  // the same in all processes

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}

/// Until the communicator has failed, at most limit_ms.
pkcommResult_t wait_for_async_error(pkcommComm_t comm, std::int64_t limit_ms) {
  pkcommResult_t error = pkcommSuccess;
  for (const std::int64_t end = now_ms() + limit_ms; now_ms() < end && error == pkcommSuccess; sleep_ms(5)) {
    if (pkcommCommGetAsyncError(comm, &error) != pkcommSuccess) return pkcommInternalError;
  }
  return error;
}

/// The work behind `called`, the last call's result, fails as expected and within the deadline, and the communicator keeps
/// it. The call itself fails where a peer has found the fault already. Work that waits for nobody, a root's, may be over
/// before a peer does: then it is heard of afterwards.
std::string expect_failure(Rank& self, pkcommResult_t called, pkcommResult_t expected,
                           const std::vector<std::string>& parts, bool waits_for_peers = true) {
  const std::int64_t begin = now_ms();
  Ending ending{called, pkcommGetLastError(nullptr)};
  if (called == pkcommSuccess) {
    ending = waits_for_peers
                 ? finish(self.comm, self.stream)
                 : Ending{wait_for_async_error(self.comm, kShortMs + 1000), pkcommGetLastError(self.comm)};
  }
  const auto& [result, text] = ending;
  const std::int64_t took = now_ms() - begin;
  self.expect(result == expected, std::string(pkcommGetErrorString(result)) + " instead of " +
                                      pkcommGetErrorString(expected) + ": " + text);
  self.expect(took <= kShortMs + 1000, "the error took " + std::to_string(took) + " ms");
  pkcommResult_t asynchronous = pkcommSuccess;
  self.ok(pkcommCommGetAsyncError(self.comm, &asynchronous), "asynchronous error");
  self.expect(asynchronous == expected,
              std::string("the asynchronous error is ") + pkcommGetErrorString(asynchronous));
  const std::string kept = pkcommGetLastError(self.comm);
  for (const std::string& part : parts) {
    self.expect(text.find(part) != std::string::npos, "'" + part + "' is not in: " + text);
    self.expect(kept.find(part) != std::string::npos, "'" + part + "' is not in the communicator's: " + kept);
  }
  return text;
}

void abort_world(Rank& self) { self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort"); }

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored))
    names.insert(entry.path().filename());
  return names;
}

}  // namespace

TEST_CASE("C17 counts that differ are an error on both ranks, and nothing is written past the shorter buffer",
          "[integration][C17]") {
  const std::string algorithm = GENERATE(from_range(algorithms()));
  const Place place = GENERATE(from_range(places()));
  CAPTURE(algorithm, static_cast<int>(place));
  const Environment environment = forced(algorithm);
  run_world(
      2,
      [&](Rank& self) {
        const std::size_t count = self.rank == 0 ? 1000 : 999;
        // Symmetric blocks have one size; the guard of the shorter call begins inside it.
        Memory send(self, place, 4000, 4), recv(self, place, 4000, 4);
        std::fill_n(send.as<float>(), count, 1.0f);
        send.upload();
        const pkcommResult_t called =
            pkcommAllReduce(send.at(), recv.at(), count, pkcommFloat32, pkcommSum, self.comm, self.stream);
        expect_failure(self, called, pkcommMismatch, {"all_reduce", "1000", "999"});
        send.download();
        recv.download();
        self.ok(pkcommStreamSynchronize(self.stream), "download");
        self.expect(recv.guards_intact(count * 4) && send.guards_intact(count * 4), "wrote past the buffer");
        abort_world(self);
      },
      short_config());
}

TEST_CASE("C17 counts that differ by half at 100 MiB", "[integration][C17]") {
  reserve_visible(std::size_t{256} << 20);
  run_world(
      2,
      [](Rank& self) {
        const std::size_t count = (std::size_t{100} << 20) / 4 / (self.rank == 0 ? 1 : 2);
        Memory block(self, Place::kVisible, count * 4, 4);
        block.fill(std::byte{0});
        const pkcommResult_t called =
            pkcommAllReduce(block.at(), block.at(), count, pkcommFloat32, pkcommSum, self.comm, self.stream);
        expect_failure(self, called, pkcommMismatch, {"all_reduce", "26214400", "13107200"});
        self.expect(block.guards_intact(), "wrote past the buffer");
        abort_world(self);
      },
      short_config());
}

TEST_CASE("C18 what differs, and on which rank, is in the text", "[integration][C18]") {
  struct Row {
    const char* what;
    std::function<pkcommResult_t(Rank&, const void*, void*)> usual, odd;
    const char *usual_word, *odd_word;
  };
  const auto reduction = [](pkcommDataType_t type, pkcommRedOp_t op) {
    return [=](Rank& self, const void* send, void* recv) {
      return pkcommAllReduce(send, recv, 100, type, op, self.comm, self.stream);
    };
  };
  const auto broadcast = [](int root) {
    return [=](Rank& self, const void* send, void* recv) {
      return pkcommBroadcast(send, recv, 100, pkcommFloat32, root, self.comm, self.stream);
    };
  };
  const auto gather = [](Rank& self, const void* send, void* recv) {
    return pkcommAllGather(send, recv, 100, pkcommFloat32, self.comm, self.stream);
  };
  const std::vector<Row> rows = {
      {"(a) another collective", reduction(pkcommFloat32, pkcommSum), gather, "all_reduce", "all_gather"},
      {"(b) another type", reduction(pkcommFloat32, pkcommSum), reduction(pkcommFloat16, pkcommSum), "float",
       "half"},
      {"(c) another operation", reduction(pkcommFloat32, pkcommSum), reduction(pkcommFloat32, pkcommMax),
       "sum", "max"},
      {"(d) another root", broadcast(0), broadcast(1), "root 0", "root 1"},
      {"(f) two calls swapped", reduction(pkcommFloat32, pkcommSum), broadcast(0), "all_reduce",
       "broadcast"}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const bool swapped = row.what[1] == 'f';
    std::barrier all_have_finished(3);  // who gives up ends what others have under way
    run_world(
        3,
        [&](Rank& self) {
          Memory send(self, Place::kVisible, 1200, 4), recv(self, Place::kVisible, 1200, 4);
          send.fill(std::byte{0});
          for (int i = 0; i < 16; ++i)
            self.ok(row.usual(self, send.at(), recv.at()), "the same calls before");
          self.synchronize("the same calls before");
          all_have_finished.arrive_and_wait();
          const bool odd = self.rank == 2;
          pkcommResult_t called = (odd ? row.odd : row.usual)(self, send.at(), recv.at());
          if (swapped && called == pkcommSuccess)
            called = (odd ? row.usual : row.odd)(self, send.at(), recv.at());
          const std::string text =
              expect_failure(self, called, pkcommMismatch, {"operation 17", row.usual_word, row.odd_word},
                             row.what[1] != 'd');
          // It is this rank itself, or the one that was heard of.
          self.expect(text.find("rank 2 (pid") != std::string::npos ||
                          text.find("this rank (2)") != std::string::npos,
                      "rank 2 is not named in: " + text);
          abort_world(self);
        },
        short_config());
  }
}

TEST_CASE("C18 (e) a call that one rank alone makes ends at the deadline, and the others hear of it",
          "[integration][C18]") {
  run_world(
      3,
      [](Rank& self) {
        Visible<std::int32_t> x{1};
        for (int i = 0; i < (self.rank == 2 ? 2 : 1); ++i) {
          self.ok(pkcommAllReduce(x.data(), x.data(), 1, pkcommInt32, pkcommSum, self.comm, self.stream),
                  "call");
          if (i == 0) self.synchronize("the same call");
        }
        if (self.rank == 2) {
          expect_failure(self, pkcommSuccess, pkcommTimeout, {"all_reduce", "operation 2", "rank 2 waited"});
        } else {
          const pkcommResult_t error = wait_for_async_error(self.comm, kShortMs + 1000);
          self.expect(error == pkcommTimeout,
                      std::string("the asynchronous error is ") + pkcommGetErrorString(error));
          const std::string text = pkcommGetLastError(self.comm);
          self.expect(
              text.find("rank 2") != std::string::npos && text.find("operation 2") != std::string::npos,
              "rank 2 and operation 2 are not in: " + text);
        }
        abort_world(self);
      },
      short_config());
}

TEST_CASE("C18 (g) ranks that each broadcast as root hear of it at the next call in which they meet",
          "[integration][C18]") {
  std::barrier both_have_broadcast(2);
  run_world(
      2,
      [&](Rank& self) {
        Visible<float> x{1, 2, 3, 4};
        self.ok(pkcommBroadcast(x.data(), x.data(), 4, pkcommFloat32, self.rank, self.comm, self.stream),
                "broadcast");
        self.synchronize("broadcast");
        both_have_broadcast.arrive_and_wait();
        const pkcommResult_t called =
            pkcommAllReduce(x.data(), x.data(), 4, pkcommFloat32, pkcommSum, self.comm, self.stream);
        expect_failure(self, called, pkcommMismatch, {"broadcast", "root 0", "root 1", "operation 1"});
        abort_world(self);
      },
      short_config());
}

TEST_CASE("C19 a process that is killed or stopped in the middle ends the work of all",
          "[integration][C19]") {
  const int signal = GENERATE(SIGKILL, SIGSTOP);
  CAPTURE(signal);
  constexpr int kRanks = 4, kVictim = 2, kFailedAsItShould = 3;
  constexpr std::size_t kCount = (std::size_t{64} << 20) / 4;
  if (!a_device_each(kRanks)) return;
  struct State {
    SharedId id;
    SharedText failures;
    std::atomic<int> in_the_loop{0};
    std::atomic<std::int64_t> struck_ms{0};
    std::atomic<std::int64_t> error_ms[kRanks]{};
  };
  const std::set<std::string> files_before = shared_memory_files();
  const Shared<State> state;
  std::vector<Process> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto complain = [&](const std::string& text) {
        state->failures.add("rank " + std::to_string(rank) + ": " + text + ": " +
                            pkcommGetLastError(nullptr));
        return 1;
      };
      use_device(device_of(rank));
      pkcommConfig_t config = short_config();
      const pkcommUniqueId id = rank == 0 ? state->id.make() : state->id.wait();
      pkcommComm_t comm = nullptr;
      pkcommStream_t stream = nullptr;
      if (pkcommCommInitRankConfig(&comm, kRanks, id, rank, &config) != pkcommSuccess)
        return complain("init");
      if (pkcommStreamCreate(&stream) != pkcommSuccess) return complain("stream");
      Visible<float> x(kCount, 1.0f);
      pkcommResult_t result = pkcommSuccess;
      for (bool first = true; result == pkcommSuccess; first = false) {
        result = pkcommAllReduce(x.data(), x.data(), kCount, pkcommFloat32, pkcommMax, comm, stream);
        if (result == pkcommSuccess) result = finish(comm, stream).result;
        if (first) state->in_the_loop.fetch_add(1);
      }
      state->error_ms[rank] = now_ms();
      if (result != pkcommRemoteError && result != pkcommTimeout)
        return complain(pkcommGetErrorString(result));
      pkcommResult_t asynchronous = pkcommSuccess;
      if (pkcommCommGetAsyncError(comm, &asynchronous) != pkcommSuccess || asynchronous != result) {
        return complain(std::string("the asynchronous error is ") + pkcommGetErrorString(asynchronous));
      }
      if (rank != kVictim && std::string(pkcommGetLastError(comm)).find("rank 2") == std::string::npos) {
        return complain("rank 2 is not named");
      }
      if (pkcommCommAbort(comm) != pkcommSuccess) return complain("abort");
      // The stream has reported its failure above, and a queue that is empty is left.
      if (pkcommStreamDestroy(stream) != pkcommSuccess) return complain("stream destroy");
      return kFailedAsItShould;
    });
  }
  for (int ms = 0; state->in_the_loop.load() < kRanks && ms < kLimitMs; ++ms) sleep_ms(1);
  REQUIRE(state->in_the_loop.load() == kRanks);
  sleep_ms(1000);
  state->struck_ms = now_ms();
  ranks[kVictim].send(signal);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == kVictim) continue;
    CAPTURE(rank);
    CHECK(ranks[static_cast<std::size_t>(rank)].wait(2 * kShortMs) == kFailedAsItShould);
    CHECK(state->error_ms[rank] - state->struck_ms <= kShortMs + 1000);
  }
  if (signal == SIGSTOP) {
    ranks[kVictim].send(SIGCONT);
    CHECK(ranks[kVictim].wait(2 * kShortMs) == kFailedAsItShould);
  } else {
    CHECK(ranks[kVictim].wait(kShortMs) == 128 + SIGKILL);
  }
  CHECK(state->failures.text() == "");
  CHECK(shared_memory_files() == files_before);
}
