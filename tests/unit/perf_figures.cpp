// pkcomm-perf: the arithmetic behind the columns.
#include <vector>

#include "pkcomm-perf/bandwidth.hpp"
#include "pkcomm-perf/statistics.hpp"
#include "support/catch.hpp"

using namespace pkcomm::perf;

TEST_CASE("C48 1 GiB in 1000 us on 8 ranks has the bandwidths of nccl-tests", "[unit][perf]") {
  struct Row {
    CollectiveId collective;
    double busbw;
  };
  const auto row = GENERATE(values<Row>({
      {CollectiveId::kAllReduce, 1879.05},
      {CollectiveId::kAllGather, 939.52},
      {CollectiveId::kReduceScatter, 939.52},
      {CollectiveId::kAllToAll, 939.52},
      {CollectiveId::kAllToAllV, 939.52},
      {CollectiveId::kGather, 939.52},
      {CollectiveId::kScatter, 939.52},
      {CollectiveId::kBroadcast, 1073.74},
      {CollectiveId::kReduce, 1073.74},
      {CollectiveId::kSendRecv, 1073.74},
      {CollectiveId::kPut, 1073.74},
  }));
  const Bandwidth rate = bandwidth(row.collective, 8, std::size_t{1} << 30, 1000);
  CHECK(rate.algbw == Catch::Approx(1073.74).margin(0.005));
  CHECK(rate.busbw == Catch::Approx(row.busbw).margin(0.005));
}

TEST_CASE("C48 one rank has no bus bandwidth", "[unit][perf]") {
  for (const CollectiveId collective :
       {CollectiveId::kAllReduce, CollectiveId::kBroadcast, CollectiveId::kPut}) {
    const Bandwidth rate = bandwidth(collective, 1, 1000, 1);
    CHECK(rate.algbw == Catch::Approx(1));
    CHECK(rate.busbw == 0);
  }
}

TEST_CASE("a time of 0 gives no bandwidth instead of infinity", "[unit][perf]") {
  CHECK(bandwidth(CollectiveId::kAllReduce, 2, 8, 0).algbw == 0);
}

TEST_CASE("percentiles are times that were measured", "[unit][perf]") {
  std::vector<double> samples;
  for (int i = 200; i >= 1; --i) samples.push_back(i);
  const Summary summary = summarize(samples);
  CHECK(summary.min == 1);
  CHECK(summary.p50 == 100);
  CHECK(summary.p95 == 190);
  CHECK(summary.p99 == 198);
  CHECK(summary.max == 200);
  CHECK(summary.mean == Catch::Approx(100.5));
  CHECK(summary.stdev == Catch::Approx(57.734).epsilon(1e-4));
}

TEST_CASE("percentiles of few samples and of none", "[unit][perf]") {
  const Summary one = summarize({7});
  CHECK(one.p50 == 7);
  CHECK(one.p99 == 7);
  CHECK(one.cv_percent() == 0);
  CHECK(summarize({1, 2, 3}).p99 == 3);
  CHECK(summarize({}).max == 0);
}
