// Runs a program of pkcomm as its users do: as a process, with words and an environment, its output caught, under a
// time limit.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"

namespace pkcomm::test {

using Environment = std::map<std::string, std::string>;

/// A program of pkcomm: beside the suite's own binary, wherever that was carried.
inline std::string program_path(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

/// One run. The process leads a group of its own, so that a signal to the group reaches its ranks and nobody
/// else.
class PerfRun {
 public:
  /// `words` are split at blanks; "''" stands for an empty word.
  explicit PerfRun(const std::string& words, const Environment& environment = {},
                   const std::string& name = "pkcomm-perf") {
    out_ = ::memfd_create("out", MFD_CLOEXEC);
    err_ = ::memfd_create("err", MFD_CLOEXEC);
    REQUIRE(out_ >= 0);
    REQUIRE(err_ >= 0);
    const std::string program = program_path(name);
    std::vector<std::string> arguments = {program};
    std::istringstream stream(words);
    for (std::string word; stream >> word;) arguments.push_back(word == "''" ? "" : word);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setpgid(0, 0);
      ::dup2(out_, STDOUT_FILENO);
      ::dup2(err_, STDERR_FILENO);
      for (const auto& [variable, value] : environment) ::setenv(variable.c_str(), value.c_str(), 1);
      ::execv(program.c_str(), argv.data());
      ::_exit(127);
    }
    ::setpgid(pid_, pid_);  // by both: whoever comes first
  }
  PerfRun(const PerfRun&) = delete;
  PerfRun& operator=(const PerfRun&) = delete;
  ~PerfRun() {
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(out_);
    ::close(err_);
  }

  pid_t pid() const { return pid_; }
  std::string out() const { return text_of(out_); }
  std::string err() const { return text_of(err_); }

  /// The rank processes, in the order of their ranks.
  std::vector<pid_t> ranks() const {
    const std::string process = "/proc/" + std::to_string(pid_);
    std::ifstream children(process + "/task/" + std::to_string(pid_) + "/children");
    std::vector<pid_t> pids;
    for (pid_t pid = 0; children >> pid;) pids.push_back(pid);
    return pids;
  }

  /// Waits until standard output holds a row; false if it does not come.
  bool wait_for_row(int limit_s = 60) const {
    return wait_until(limit_s * 1000, [&] { return !rows().empty(); });
  }

  /// The exit code, or -n after signal n; -1000 if the process has not ended in time.
  int wait(int limit_s = 60) {
    int status = 0;
    const bool ended = wait_until(limit_s * 1000, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
    if (!ended) return -1000;
    group_ = pid_;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  /// After wait(): whether any process of the run is left.
  bool all_gone() const { return ::kill(-group_, 0) != 0 && errno == ESRCH; }

  /// The words of each row of the table.
  std::vector<std::vector<std::string>> rows() const {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(out());
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.front() == '#' || lines.eof()) continue;
      std::istringstream words(line);
      rows.emplace_back();
      for (std::string word; words >> word;) rows.back().push_back(word);
    }
    return rows;
  }

  template <class Condition>
  static bool wait_until(int limit_ms, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  static std::string text_of(int fd) {
    std::string text;
    char part[4096];
    ssize_t got = 0;
    while ((got = ::pread(fd, part, sizeof part, static_cast<off_t>(text.size()))) > 0) {
      text.append(part, static_cast<std::size_t>(got));
    }
    return text;
  }

  pid_t pid_ = -1;
  pid_t group_ = -1;
  int out_ = -1;
  int err_ = -1;
};

/// Columns of a row, counted as nccl-tests prints them.
inline constexpr std::size_t kSizeColumn = 0, kCountColumn = 1, kBusbwColumn = 7, kWrongColumn = 8,
                             kInPlaceWrongColumn = 12;

/// Names a directory that is gone when the test is.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/tmp/pkcomm-test-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    const std::string command = "rm -r '" + path_ + "'";
    [[maybe_unused]] const int result = std::system(command.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace pkcomm::test
