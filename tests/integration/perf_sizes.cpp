// pkcomm-perf's command line: sizes as they are shown, and refusals with exit code 2 and one line.
#include <algorithm>

#include "perf_program.hpp"

using namespace pkcomm::test;

TEST_CASE("C46 sizes with suffixes give the rows that were asked for", "[integration][perf][C46]") {
  struct Row {
    const char* words;
    std::vector<std::string> sizes;
  };
  const auto row = GENERATE(values<Row>({
      {"-b 64M -e 70M -i 2M -n 1 -w 0 -c 0", {"67108864", "69206016", "71303168", "73400320"}},
      {"-b 1k -e 10K -f 3", {"1024", "3072", "9216"}},
      {"-b 1.5K -e 1.5K", {"1536"}},
      {"-d float -b 6 -e 6", {"4"}},
      {"-d float -b 4 -e 9 -i 1", {"4", "8"}},
  }));
  CAPTURE(row.words);
  PerfRun run(std::string("all_reduce -g 2 ") + row.words);
  REQUIRE(run.wait() == 0);
  std::vector<std::string> sizes;
  for (const auto& words : run.rows()) sizes.push_back(words[kSizeColumn]);
  CHECK(sizes == row.sizes);
  CHECK(run.err().empty());
}

TEST_CASE("C46 nonsense is refused with one line and exit code 2", "[integration][perf][C46]") {
  const std::string words = GENERATE(
      "-b 1G -e 1M", "-b 10X", "-b -1", "-b ''", "-b 1KB", "-b 99999999999G", "-i 2MM", "-e nan", "-n 0",
      "-n 5x", "-g 0", "-t -2", "-f 0", "-d flat", "-o summ", "-r x", "-z 4", "-a 9", "-D 1", "--topology x",
      "--plot x.gif", "--json /nonexistent/x", "--memory some", "--unknown", "all_gather", "-I 1 -y 1",
      "-K 20", "-r 2", "-b 8 -e 16 -i 0", "-N 0 --json -", "--rendezvous nowhere", "--backend mpi",
      "--backend nccl,nccl", "--backend nccl --platform host", "--backend nccl --explain", "--nccl-lib x",
      "--eager", "--graph -y 1", "--graph -z 1", "--graph-calls 0", "--repeats 0", "--cold -m 2");
  CAPTURE(words);
  PerfRun run("all_reduce -g 2 " + words);
  CHECK(run.wait() == 2);
  CHECK(run.out().empty());
  const std::string err = run.err();
  CHECK(std::count(err.begin(), err.end(), '\n') == 1);
  CHECK_THAT(err, contains_text("pkcomm-perf: "));
}

TEST_CASE("flags of nccl-tests without a meaning here are accepted and said once", "[integration][perf]") {
  PerfRun run("all_reduce -t 2 -b 8 -e 64 -f 2 -p 1 -G 2 -x 1 -R 1 -V 16 -D 0");
  CHECK(run.wait() == 0);
  CHECK(run.rows().size() == 4);
  for (const char* flag : {"-p 1", "-G 2", "-x 1", "-R 1", "-V 16"}) {
    const std::string err = run.err();
    const std::size_t first = err.find(std::string("pkcomm-perf: ") + flag);
    CHECK(first != std::string::npos);
    CHECK(err.find(std::string("pkcomm-perf: ") + flag, first + 1) == std::string::npos);
  }
}

TEST_CASE("NCCL is refused on the host platform before anything is measured", "[integration][perf]") {
  PerfRun run("all_reduce -g 2 -b 8 -e 8 --backend pkcomm,nccl", {{"PKCOMM_PLATFORM", "host"}});
  CHECK(run.wait() == 1);
  CHECK_THAT(run.err(), contains_text("NCCL runs on GPUs alone"));
  CHECK(run.rows().empty());
}

TEST_CASE("repeated measurements give one row with their median", "[integration][perf]") {
  PerfRun run("all_reduce,barrier -g 2 -b 8 -e 8 -n 2 --repeats 3");
  CHECK(run.wait() == 0);
  CHECK(run.rows().size() == 2);
  CHECK_THAT(run.out(), contains_text("medians of 3 repetitions"));
}

TEST_CASE("help, version and list go to standard output", "[integration][perf]") {
  for (const char* words : {"--help", "--version", "--list"}) {
    PerfRun run(words);
    CHECK(run.wait() == 0);
    CHECK_FALSE(run.out().empty());
    CHECK(run.err().empty());
  }
}
