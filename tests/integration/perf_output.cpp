// What is printed where: tables on standard output alone, the library's words on standard error or in files,
// and nothing at all where nothing is to be said.
#include <filesystem>

#include "perf_program.hpp"

using namespace pkcomm::test;

namespace {

const std::string kShort = "all_reduce -g 2 -b 8 -e 1K -f 4 -n 2";
constexpr std::size_t kShortRows = 4;

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path());
  return names;
}

}  // namespace

TEST_CASE("C42 the library never writes to standard output", "[integration][perf][C42]") {
  const std::string level = GENERATE("", "warn", "info", "debug");
  CAPTURE(level);
  PerfRun run(kShort, level.empty() ? Environment{} : Environment{{"PKCOMM_LOG", level}});
  CHECK(run.wait() == 0);
  const auto rows = run.rows();
  CHECK(rows.size() == kShortRows);
  for (const auto& words : rows)
    CHECK(words.size() == 16);  // what is neither a row nor a comment is somebody else's
  if (level.empty() || level == "warn") CHECK(run.err().empty());
  const std::string err = run.err();
  if (!err.empty()) CHECK(err.back() == '\n');
}

TEST_CASE("C42 a log file's pattern gives one file a process, whole lines after a kill",
          "[integration][perf][C42]") {
  const TemporaryDirectory directory;
  PerfRun run("all_reduce -g 2 -b 256K -e 256K -n 10 -N 0 -c 0",
              {{"PKCOMM_LOG", "debug"}, {"PKCOMM_LOG_FILE", directory.path() + "/%h.%p.log"}});
  REQUIRE(run.wait_for_row());
  const std::vector<pid_t> ranks = run.ranks();
  REQUIRE(ranks.size() == 2);
  ::kill(-run.pid(), SIGKILL);
  CHECK(run.wait() == -SIGKILL);
  const auto files = files_in(directory.path());
  CHECK(files.size() == 2);
  for (const std::string& file : files) {
    const std::string text = text_of_file(file);
    CAPTURE(file, text);
    REQUIRE_FALSE(text.empty());
    CHECK(text.back() == '\n');
    const bool of_a_rank = file.find("." + std::to_string(ranks[0]) + ".log") != std::string::npos ||
                           file.find("." + std::to_string(ranks[1]) + ".log") != std::string::npos;
    CHECK(of_a_rank);
  }
}

TEST_CASE("the table has the 13 columns of nccl-tests first", "[integration][perf]") {
  PerfRun run(kShort);
  CHECK(run.wait() == 0);
  const std::string out = run.out();
  const std::string heading =
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   "
      "algbw   busbw  "
      "#wrong";
  CHECK_THAT(out, contains_text("\n" + heading));
  for (const auto& words : run.rows()) {
    REQUIRE(words.size() == 16);
    CHECK(std::stoul(words[kSizeColumn]) == 4 * std::stoul(words[kCountColumn]));
    CHECK(words[2] == "float");
    CHECK(words[3] == "sum");
    CHECK(words[4] == "-1");
    for (const std::size_t column : {5, 6, 7, 9, 10, 11}) CHECK_NOTHROW(std::stod(words[column]));
    CHECK_FALSE(words[13].empty());
  }
  CHECK_THAT(out, contains_text("# host platform: these times show that it works"));
  CHECK_THAT(out, contains_text("# Avg bus bandwidth    : "));
}

TEST_CASE("an operation without an in-place form keeps its columns", "[integration][perf]") {
  PerfRun run("all_to_all,sendrecv,put,barrier -t 2 -b 64 -e 64 -n 2");
  CHECK(run.wait() == 0);
  REQUIRE(run.rows().size() == 4);
  for (const auto& words : run.rows()) {
    REQUIRE(words.size() == 16);
    CHECK(words[9] == "nan");
    CHECK(words[kInPlaceWrongColumn] == "N/A");
    CHECK(words[kWrongColumn] == "0");
  }
}

TEST_CASE("extra columns come behind the others", "[integration][perf]") {
  PerfRun run(kShort + " --percentiles --skew -S 1");
  CHECK(run.wait() == 0);
  for (const auto& words : run.rows())
    CHECK(words.size() == 16 + 2 * (4 + 1) + 2);  // a time stamp is two words
  PerfRun per_iteration(kShort + " -I 1 -K 1");
  CHECK(per_iteration.wait() == 0);
  for (const auto& words : per_iteration.rows()) CHECK(words.size() == 16 + 2 * 4);
}

TEST_CASE("explain names candidates and starts no rank", "[integration][perf]") {
  PerfRun run("all_reduce,barrier -g 8 -b 8 -e 1M -f 64 --explain");
  CHECK(run.wait() == 0);
  CHECK_THAT(run.out(), contains_text("one_shot_ll"));
  CHECK_THAT(run.out(), contains_text("8 ranks"));
  PerfRun unreadable("all_reduce -g 8 --explain --topology /nonexistent/machine.json");
  CHECK(unreadable.wait() == 1);
  CHECK_THAT(unreadable.err(), contains_text("/nonexistent/machine.json"));
}

TEST_CASE("a plot is made for each operation", "[integration][perf]") {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
    WARN("gnuplot is not installed");
    return;
  }
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/plot.svg";
  PerfRun run("all_reduce,all_gather -t 2 -b 8 -e 4K -f 4 -n 2 --algorithm each --plot " + file);
  CHECK(run.wait() == 0);
  for (const char* collective : {"all_reduce", "all_gather"}) {
    const std::string text = text_of_file(directory.path() + "/plot-" + collective + ".svg");
    CHECK_THAT(text, contains_text("<svg"));
    CHECK_THAT(text, contains_text("as the dispatcher chooses"));
    CHECK_THAT(text, contains_text("one_shot_ll"));
  }
}
