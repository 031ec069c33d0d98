// pkcomm-perf: the table of operations, the ranks' meeting, and what is handed to gnuplot.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "pkcomm-perf/collectives.hpp"
#include "pkcomm-perf/plot.hpp"
#include "pkcomm-perf/team.hpp"
#include "support/catch.hpp"

using namespace pkcomm::perf;
using pkcomm::test::contains_text;

TEST_CASE("size and count mean what they mean in nccl-tests", "[unit][perf]") {
  struct Row {
    CollectiveId id;
    std::size_t count, send, recv, sized;
  };
  // 1003 elements on 4 ranks.
  const auto row = GENERATE(values<Row>({
      {CollectiveId::kAllReduce, 1003, 1003, 1003, 1003},
      {CollectiveId::kReduce, 1003, 1003, 1003, 1003},
      {CollectiveId::kBroadcast, 1003, 1003, 1003, 1003},
      {CollectiveId::kAllGather, 250, 250, 1000, 1000},
      {CollectiveId::kReduceScatter, 250, 1000, 250, 1000},
      {CollectiveId::kAllToAll, 250, 1000, 1000, 1000},
      {CollectiveId::kGather, 250, 250, 1000, 1000},
      {CollectiveId::kScatter, 250, 1000, 250, 1000},
      {CollectiveId::kSendRecv, 1003, 1003, 1003, 1003},
      {CollectiveId::kPut, 1003, 1003, 1003, 1003},
      {CollectiveId::kBarrier, 0, 0, 0, 0},
  }));
  const Collective& collective = describe(row.id);
  CAPTURE(collective.name);
  const Shape shape = collective.shape(1003, 4);
  CHECK(shape.count == row.count);
  CHECK(shape.send == row.send);
  CHECK(shape.recv == row.recv);
  CHECK(shape.sized == row.sized);
}

TEST_CASE("outputs and in-place positions stay within the buffers", "[unit][perf]") {
  const int nranks = GENERATE(1, 2, 3, 8, 72);
  const std::size_t elements = GENERATE(as<std::size_t>{}, 0, 1, 71, 1000);
  for (const Collective& collective : collectives()) {
    CAPTURE(collective.name, nranks, elements);
    const Shape shape = collective.shape(elements, nranks);
    CHECK(shape.sized <= elements);
    CHECK(std::max(shape.send, shape.recv) <= elements);
    for (int rank = 0; rank < nranks; ++rank) {
      const Seat seat{rank, nranks, nranks / 2};
      std::vector<Segment> outputs;
      collective.outputs(shape.count, seat, outputs);
      for (const Segment& output : outputs) {
        CHECK(output.at + output.count <= shape.recv);
        const bool moved = output.kind == Segment::kInput;
        if (moved) CHECK(output.rank < nranks);
        if (moved) CHECK(output.first + output.count <= shape.send);
      }
      if (!collective.in_place) continue;
      const InPlace place = collective.place(shape.count, seat);
      CHECK(place.send_at + shape.send <= std::max(shape.send, shape.recv));
      CHECK(place.recv_at + shape.recv <= std::max(shape.send, shape.recv));
    }
  }
}

TEST_CASE("what all_to_all_v sends is what the other end expects", "[unit][perf]") {
  const int nranks = GENERATE(1, 2, 5, 8);
  constexpr std::size_t kBlock = 100;
  std::vector<Call> calls(static_cast<std::size_t>(nranks));
  std::set<std::size_t> counts;
  for (int rank = 0; rank < nranks; ++rank) {
    Call& call = calls[static_cast<std::size_t>(rank)];
    call.count = kBlock;
    call.seat = {rank, nranks, 0};
    set_pair_counts(call);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (std::size_t j = 0; j < calls.size(); ++j) {
      CHECK(calls[i].send_counts[j] == calls[j].recv_counts[i]);
      CHECK(calls[i].send_counts[j] <= kBlock);
      CHECK(calls[i].displacements[j] == j * kBlock);
      counts.insert(calls[i].send_counts[j]);
    }
  }
  if (nranks > 2) CHECK(counts.size() == 4);  // full, half, three quarters, empty
}

TEST_CASE("collectives are found by their names and those of nccl-tests", "[unit][perf]") {
  CHECK(find_collectives("all").value().size() == collectives().size());
  CHECK(find_collectives("all_reduce_perf").value() == std::vector{CollectiveId::kAllReduce});
  CHECK(find_collectives("alltoall,put").value() == std::vector{CollectiveId::kAllToAll, CollectiveId::kPut});
  for (const char* wrong : {"", ",", "all_reduce,", "allreduc", "All_Reduce"})
    CHECK_FALSE(find_collectives(wrong).ok());
}

namespace {

MeetingPoint own_meeting_point(const char* purpose) {
  return meeting_point_of(std::string(purpose) + std::to_string(::getpid()));
}

int connected_to(const MeetingPoint& where) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, where.name.data(), where.name.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + where.name.size());
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) std::this_thread::yield();
  return fd;
}

}  // namespace

TEST_CASE("a team gathers in rank order and broadcasts from rank 0", "[unit][perf]") {
  constexpr int kRanks = 5;
  const MeetingPoint where = own_meeting_point("gather");
  std::vector<std::string> faults(kRanks);
  std::vector<std::thread> threads;
  for (int rank = kRanks - 1; rank >= 0; --rank) {
    threads.emplace_back([&, rank] {
      std::string& fault = faults[static_cast<std::size_t>(rank)];
      Result<Team> team = Team::join(where, rank, kRanks, 30);
      if (!team.ok()) {
        fault = team.error().text;
        return;
      }
      const Result<std::vector<int>> all = team.value().collect(rank * 10);
      if (!all.ok()) fault = all.error().text;
      if (rank == 0 && all.ok() && all.value() != std::vector<int>{0, 10, 20, 30, 40}) fault = "order";
      int word = rank == 0 ? 42 : 0;
      if (!team.value().broadcast(&word, sizeof word).ok() || word != 42) fault = "broadcast";
      if (!team.value().barrier().ok()) fault = "barrier";
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& fault : faults) CHECK(fault.empty());
}

TEST_CASE("a team drops strangers and goes on waiting", "[unit][perf]") {
  const MeetingPoint where = own_meeting_point("strangers");
  bool joined[2] = {};
  std::thread hub([&] { joined[0] = Team::join(where, 0, 2, 30).ok(); });
  const int silent = connected_to(where);
  ::close(silent);
  const int rude = connected_to(where);
  const std::string words = "GET / HTTP/1.1\r\nHost: nobody\r\n\r\n";
  CHECK(::send(rude, words.data(), words.size(), MSG_NOSIGNAL) > 0);
  joined[1] = Team::join(where, 1, 2, 30).ok();
  hub.join();
  ::close(rude);
  CHECK(joined[0]);
  CHECK(joined[1]);
}

TEST_CASE("a team that is not complete names who is missing", "[unit][perf]") {
  const Result<Team> team = Team::join(own_meeting_point("missing"), 0, 3, 1);
  REQUIRE_FALSE(team.ok());
  CHECK_THAT(team.error().text, contains_text("ranks 1, 2"));
}

TEST_CASE("a rank that leaves is noticed at once", "[unit][perf]") {
  const MeetingPoint where = own_meeting_point("leaves");
  std::thread other([&] { (void)Team::join(where, 1, 2, 30); });  // and is gone
  Result<Team> team = Team::join(where, 0, 2, 30);
  other.join();
  REQUIRE(team.ok());
  const Outcome outcome = team.value().barrier();
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().hearsay);
  CHECK_THAT(outcome.error().text, contains_text("rank 1"));
}

TEST_CASE("a meeting point is host and port", "[unit][perf]") {
  CHECK(parse_meeting_point("node7:29501").value().port == "29501");
  CHECK(parse_meeting_point("[::1]:80").value().host == "::1");
  for (const char* wrong : {"", "node7", ":80", "node7:", "node7:0", "node7:65536", "node7:8x", "node7:-1"}) {
    CHECK_FALSE(parse_meeting_point(wrong).ok());
  }
}

TEST_CASE("a plot has a curve for each algorithm", "[unit][perf]") {
  std::vector<Row> rows(4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].bytes = std::size_t{8} << i;
    rows[i].type = "float";
    rows[i].algorithm = i < 2 ? "one_shot_ll" : "direct_ldst";
    rows[i].out_of_place = Half{};
    rows[i].out_of_place->time_us = static_cast<double>(i) + 0.5;
    rows[i].out_of_place->busbw = 1;
  }
  const std::string script = plot_script(rows, "it's a title", "a'b.svg");
  CHECK_THAT(script, contains_text("set terminal svg"));
  CHECK_THAT(script, contains_text("set output 'a''b.svg'"));
  CHECK_THAT(script, contains_text("'it''s a title'"));
  CHECK_THAT(script, contains_text("title 'one_shot_ll'"));
  CHECK_THAT(script, contains_text("title 'direct_ldst'"));
  CHECK_THAT(script, contains_text("\n16 1.5 1\n"));
  CHECK(plot_file("x/plot.png", "put", true) == "x/plot-put.png");
  CHECK_FALSE(plot_terminal("plot.pdf").has_value());
  CHECK_FALSE(plot_terminal(".svg").has_value());
}
