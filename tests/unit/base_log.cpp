// base/log.hpp, each case in a forked child whose stdout, stderr or log file the parent reads: levels and files are
// decided once a process. The child leaves by SIGKILL, so what is read was written at once (C42).
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "support/catch.hpp"
#include "support/coverage.hpp"

using namespace pkcomm;
using pkcomm::test::contains_text;

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string digits_as_0(std::string text) {
  for (char& c : text) c = c >= '0' && c <= '9' ? '0' : c;
  return text;
}

/// A directory that goes away with the test.
struct Directory {
  std::filesystem::path path;
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pkcomm-log-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
};

struct Output {
  pid_t pid;
  std::string out;
  std::string err;
};

/// What `f` writes in a child that is then killed.
Output run_and_kill(const std::function<void()>& f) {
  const Directory directory;
  const auto out = directory.path / "out";
  const auto err = directory.path / "err";
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    f();
    test::keep_coverage();
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
  return {pid, contents(out), contents(err)};
}

void log_each_level() {
  log(LogLevel::kError, "line error");
  log(LogLevel::kWarn, "line warn");
  log(LogLevel::kInfo, "line info");
  log(LogLevel::kDebug, "line debug");
}

}  // namespace

TEST_CASE("C42: levels up to PKCOMM_LOG go to stderr, nothing to stdout", "[base][log][C42]") {
  struct Row {
    const char* level;
    std::size_t lines;
  };
  const auto row =
      GENERATE(values<Row>({{nullptr, 2}, {"error", 1}, {"WARN", 2}, {"info", 3}, {"debug", 4}}));
  const Output output = run_and_kill([&] {
    if (row.level) setenv("PKCOMM_LOG", row.level, 1);
    log_each_level();
  });
  CHECK(output.out.empty());
  CHECK(lines_of(output.err).size() == row.lines);
  const std::string names[] = {"error", "warn", "info", "debug"};
  const std::string process = std::to_string(output.pid);
  for (std::size_t i = 0; i < row.lines; ++i) {
    const std::string line = lines_of(output.err)[i];
    CHECK(digits_as_0(line.substr(0, 15)) == "00:00:00.000000");
    CHECK(line.substr(15) == " pkcomm[" + process + ":" + process + "] " + names[i] + ": line " + names[i]);
  }
}

TEST_CASE("C42: stderr stays empty when all is well", "[base][log][C42]") {
  const Output output = run_and_kill([] {
    log(LogLevel::kInfo, "rank 0 is up");
    environment::warn_about_unknown_variables();
    (void)environment::get<environment::Var::kStaging>();
  });
  CHECK(output.out.empty());
  CHECK(output.err.empty());
}

TEST_CASE("a bad PKCOMM_LOG is one line and means warn", "[base][log][C40]") {
  const Output output = run_and_kill([] {
    setenv("PKCOMM_LOG", "loud", 1);
    log_each_level();
  });
  const auto lines = lines_of(output.err);
  REQUIRE(lines.size() == 3);
  CHECK_THAT(lines[0], contains_text("PKCOMM_LOG=\"loud\": unknown, nearest is "));
  CHECK_THAT(lines[0], contains_text("; allowed error, warn, info, debug; using warn"));
}

TEST_CASE("C42: PKCOMM_LOG_FILE gives one file a process, forked ones too", "[base][log][C42]") {
  const Directory directory;
  const std::string pattern = (directory.path / "%h.%p.100%%.log").string();
  const Output output = run_and_kill([&] {
    setenv("PKCOMM_LOG_FILE", pattern.c_str(), 1);
    log(LogLevel::kWarn, "from the parent");
    if (fork() == 0) {
      log(LogLevel::kWarn, "from the child");
      raise(SIGKILL);
    }
    wait(nullptr);
    log(LogLevel::kWarn, "from the parent again");
  });
  CHECK(output.err.empty());
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path)) {
    ++files;
    const bool parents = entry.path().filename().string().find("." + std::to_string(output.pid) +
                                                               ".100%.log") != std::string::npos;
    CHECK(lines_of(contents(entry.path())).size() == (parents ? 2u : 1u));
  }
  CHECK(files == 2);
}

TEST_CASE("a log file that cannot be opened is said once, and stderr is used", "[base][log]") {
  const Output output = run_and_kill([] {
    setenv("PKCOMM_LOG_FILE", "/nonexistent/%p.log", 1);
    log(LogLevel::kWarn, "first");
    log(LogLevel::kWarn, "second");
  });
  const auto lines = lines_of(output.err);
  REQUIRE(lines.size() == 3);
  CHECK_THAT(lines[0], contains_text("PKCOMM_LOG_FILE=\"/nonexistent/%p.log\": cannot open /nonexistent/"));
  CHECK_THAT(lines[0], contains_text("No such file or directory; using stderr"));
}

TEST_CASE("a message is one line, whatever is in it, and errno stays", "[base][log]") {
  const Output output = run_and_kill([] {
    errno = ENOTTY;
    log(LogLevel::kWarn, "name \"a\nb\r{}\" %s {0}");
    if (errno != ENOTTY) log(LogLevel::kError, "errno changed");
  });
  REQUIRE(lines_of(output.err).size() == 1);
  CHECK_THAT(output.err, contains_text("warn: name \"a\\nb\\r{}\" %s {0}"));
}

TEST_CASE("log_once says a key once, from any number of threads, in whole lines", "[base][log]") {
  const Output output = run_and_kill([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 50; ++i) {
          log_once("key", LogLevel::kWarn, "said once");
          log(LogLevel::kWarn, "thread " + std::to_string(t) + std::string(200, '.'));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const auto lines = lines_of(output.err);
  CHECK(lines.size() == 8 * 50 + 1);
  std::size_t once = 0;
  for (const std::string& line : lines) {
    once += line.find("said once") != std::string::npos ? 1 : 0;
    CHECK((line.ends_with("said once") || line.ends_with(std::string(200, '.'))));
  }
  CHECK(once == 1);
}

TEST_CASE("C41: unknown PKCOMM_ names are warned about once", "[base][log][C41]") {
  const Output output = run_and_kill([] {
    setenv("PKCOMM_ALGOS", "x", 1);
    setenv("PKCOM_DEBUG", "x", 1);
    setenv("PKCOMM_NCCL_MODE", "x", 1);
    setenv("PKCOMM_TEST_PLATFORM", "cuda", 1);
    setenv("PKCOMM_PERF_NCCL", "x", 1);
    setenv("PKCOMM_PERFORMANCE", "x", 1);
    setenv("PKCOMM_CUDA", "OFF", 1);
    for (int i = 0; i < 3; ++i) environment::warn_about_unknown_variables();
  });
  CHECK(lines_of(output.err).size() == 3);
  CHECK_THAT(output.err, contains_text("PKCOMM_PERFORMANCE is not a variable of pkcomm"));
  CHECK_THAT(output.err,
             contains_text("PKCOMM_ALGOS is not a variable of pkcomm and has no effect; the nearest is "
                           "PKCOMM_ALGORITHM"));
  CHECK_THAT(output.err,
             contains_text("PKCOM_DEBUG is not a variable of pkcomm and has no effect; the nearest is "
                           "PKCOMM_LOG"));
}

TEST_CASE("C41: a bad value and an unknown name inside one are warned about once", "[base][log][C41]") {
  const Output output = run_and_kill([] {
    setenv("PKCOMM_STAGING", "4KB", 1);
    for (int i = 0; i < 3; ++i) {
      (void)environment::get<environment::Var::kStaging>();
      constexpr std::string_view kAllowed[] = {"one_shot_ll", "direct_ldst"};
      environment::report_unknown_name(environment::Var::kAlgorithm, "one_shot", kAllowed);
    }
  });
  const auto lines = lines_of(output.err);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[1],
             contains_text("PKCOMM_ALGORITHM: unknown name \"one_shot\", nearest is one_shot_ll; allowed "
                           "one_shot_ll, direct_ldst; ignored"));
}
