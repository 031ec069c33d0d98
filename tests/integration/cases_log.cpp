// Where lines go: standard output stays empty, standard error and log files get whole lines.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "crew.hpp"

using namespace pkcomm::test;

namespace {

/// Every line begins with a time, says who speaks and how serious it is, and ends.
bool whole_lines(const std::string& text) {
  if (text.empty() || text.back() != '\n') return false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (line.size() < 20 || line[2] != ':' || line[5] != ':' || line.find(" pkcomm[") != 15) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

TEST_CASE("C42 standard output stays empty, and lines are whole and written at once", "[integration][C42]") {
  if (!a_device_each(2)) return;
  const std::string level = GENERATE("", "info", "debug");
  CAPTURE(level);
  Shared<Ids> ids;
  Shared<std::atomic<int>> reduced;
  Crew crew(Crew::kCaptured);
  crew.start(2, [&](int process, Failures& failures) {
    if (!level.empty()) ::setenv("PKCOMM_LOG", level.c_str(), 1);
    if (process == 0) ids->make();
    run_rank(2, ids->wait(), process, failures, [&](Rank& self) {
      expect_float_sums(self, 100000);
      ++*reduced;
      ::pause();
    });
  });
  REQUIRE(comes_true([&] { return *reduced == 2; }));
  crew[0].send(SIGSTOP);  // so that the end of one is no news to the other
  crew[1].send(SIGKILL);
  crew[0].send(SIGKILL);
  for (int process = 0; process < 2; ++process) {
    const Crew::Ending ending = crew.wait(process);
    CAPTURE(process, ending.err);
    CHECK(ending.code == 128 + SIGKILL);
    CHECK(ending.out == "");
    if (level.empty()) {
      CHECK(ending.err == "");
    } else {
      CHECK(whole_lines(ending.err));
      CHECK_THAT(ending.err, contains_text("is ready"));
    }
  }
}

TEST_CASE("C42 a file pattern gives each process its file", "[integration][C42]") {
  if (!a_device_each(2)) return;
  char directory[] = "/tmp/pkcomm-test-XXXXXX";
  REQUIRE(::mkdtemp(directory) != nullptr);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  Shared<Ids> ids;
  Crew crew(Crew::kCaptured);
  crew.start(2, [&](int process, Failures& failures) {
    ::setenv("PKCOMM_LOG", "info", 1);
    ::setenv("PKCOMM_LOG_FILE", (std::string(directory) + "/%h.%p.log").c_str(), 1);
    if (process == 0) ids->make();
    run_rank(2, ids->wait(), process, failures, sum_of_ranks);
  });
  for (int process = 0; process < 2; ++process) {
    const std::string name =
        std::string(directory) + "/" + host + "." + std::to_string(crew[process].pid()) + ".log";
    const Crew::Ending ending = crew.wait(process);
    CHECK(ending.failures == "");
    CHECK(ending.out == "");
    CHECK(ending.err == "");
    std::ifstream file(name);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    CAPTURE(name, text);
    CHECK(whole_lines(text));
    CHECK_THAT(text, contains_text("rank " + std::to_string(process) + " of 2 is ready"));
  }
  CHECK(entries(directory) == 2);
  std::filesystem::remove_all(directory);
}
