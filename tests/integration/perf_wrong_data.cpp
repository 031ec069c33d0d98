// pkcomm-perf's data check: right data pass on every path, and one flipped bit is seen in every kind of
// output.
#include <nlohmann/json.hpp>

#include "perf_program.hpp"

using namespace pkcomm::test;

namespace {

// One bit, on rank 1, in the last element, at one of three sizes.
const std::string kSweep = "-g 2 -b 1K -e 4K -f 2 -n 2 ";

}  // namespace

TEST_CASE("C47 one flipped bit fails its row, the summary and the exit code", "[integration][perf][C47]") {
  struct Row {
    const char* placement;
    const char* out_of_place;
    const char* in_place;
    const char* total;
  };
  const auto row =
      GENERATE(values<Row>({{"out", "1", "0", "1"}, {"in", "0", "1", "1"}, {"both", "1", "1", "2"}}));
  const std::string collective = GENERATE("all_reduce", "all_gather", "reduce_scatter", "broadcast");
  CAPTURE(collective, row.placement);
  PerfRun run(collective + " " + kSweep + "--inject-error 1:last:" + row.placement + ":2K");
  CHECK(run.wait() == 1);
  const auto rows = run.rows();
  REQUIRE(rows.size() == 3);
  for (const auto& words : rows) {
    const bool faulty = words[kSizeColumn] == "2048";
    CHECK(words[kWrongColumn] == (faulty ? row.out_of_place : "0"));
    CHECK(words[kInPlaceWrongColumn] == (faulty ? row.in_place : "0"));
  }
  CHECK_THAT(run.out(), contains_text(std::string("# Out of bounds values : ") + row.total + " FAILED"));
  CHECK_THAT(run.out(),
             contains_text(std::string("# FAILED: ") + row.total + " wrong values, in 1 of 3 rows"));
}

TEST_CASE("C47 JSON parses and says that the data were wrong", "[integration][perf][C47]") {
  PerfRun run("all_gather " + kSweep + "--inject-error 1:last:both:2K --json -");
  CHECK(run.wait() == 1);
  const auto document = nlohmann::json::parse(run.out());
  CHECK(document.at("status") == "FAILED");
  CHECK(document.at("out_of_bounds").at("count") == 2);
  CHECK(document.at("out_of_bounds").at("okay") == false);
  CHECK(document.at("failed_rows") == 1);
  for (const auto& result : document.at("results")) {
    const int wrong = result.at("size") == 2048 ? 1 : 0;
    CHECK(result.at("out_of_place").at("nwrong") == wrong);
    CHECK(result.at("in_place").at("nwrong") == wrong);
    CHECK(result.at("out_of_place_per_iter").at("times_us").size() == 2);
  }
}

TEST_CASE("C47 CSV shows the wrong element in its line", "[integration][perf][C47]") {
  PerfRun run("all_gather " + kSweep + "--inject-error 1:last:in:2K --csv -");
  CHECK(run.wait() == 1);
  std::istringstream lines(run.out());
  std::string heading;
  std::getline(lines, heading);
  CHECK_THAT(heading, contains_text("busbw_gbps,wrong,"));
  int wrong_lines = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    REQUIRE(row.size() > 12);
    const bool faulty = row[3] == "2048" && row[8] == "in_place";
    CHECK(row[12] == (faulty ? "1" : "0"));
    wrong_lines += faulty ? 1 : 0;
  }
  CHECK(wrong_lines == 1);
  CHECK_THAT(run.err(), contains_text("# FAILED: 1 wrong values"));
}

TEST_CASE("C47 without a check nothing is called right", "[integration][perf][C47]") {
  PerfRun run("all_gather " + kSweep + "--inject-error 1:last:both -c 0");
  CHECK(run.wait() == 0);
  for (const auto& words : run.rows()) {
    CHECK(words[kWrongColumn] == "N/A");
    CHECK(words[kInPlaceWrongColumn] == "N/A");
  }
  CHECK_THAT(run.out(), contains_text("not checked"));
  PerfRun json("all_gather " + kSweep + "-c 0 --json -");
  CHECK(json.wait() == 0);
  const auto document = nlohmann::json::parse(json.out());
  CHECK(document.at("status") == "UNCHECKED");
  CHECK(document.at("out_of_bounds").at("count").is_null());
  CHECK(document.at("results").at(0).at("out_of_place").at("nwrong").is_null());
}

TEST_CASE("every operation passes its check", "[integration][perf]") {
  const std::string ranks = GENERATE("-g 1", "-g 3", "-t 4", "-g 2 -t 2");
  const std::string data = GENERATE("-R 0", "-R 2", "-R 0 -u 1 -d int8,double -m 2 -c 2");
  CAPTURE(ranks, data);
  PerfRun run("all " + ranks + " " + data + " -b 8 -e 32K -f 64 -n 3 -T 20");
  CHECK(run.wait(100) == 0);
  INFO(run.err());
  CHECK_THAT(run.out(), contains_text("0 wrong values: OK"));
}

TEST_CASE("every type and operation passes its check", "[integration][perf]") {
  PerfRun run("all_reduce,reduce,reduce_scatter -t 3 -d all -o all -b 1K -e 1K -n 1 -T 20");
  CHECK(run.wait(100) == 0);
  INFO(run.err());
  CHECK(run.rows().size() == std::size_t{3 * 12 * 6});
  CHECK_THAT(run.out(), contains_text("0 wrong values: OK"));
}
