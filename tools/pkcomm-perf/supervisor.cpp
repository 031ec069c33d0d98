// Signals are waited for, not handled: they are blocked before the first fork, so none is lost, and there is
// no handler whose restrictions would matter. The kernel kills the rank processes should this one vanish.
#include "supervisor.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace pkcomm::perf {

namespace {

constexpr int kChildFailed = 3;  // between the two processes: the status holds the reason

struct Child {
  pid_t pid = -1;
  bool running = false;
  int wait_status = 0;
};

// How the run as a whole stands.
struct Verdict {
  int exit_code = 0;
  std::string line;  // for stderr
  bool over = false;
};

class Supervisor {
 public:
  explicit Supervisor(const Crew& crew) : crew_(crew), children_(static_cast<std::size_t>(crew.processes)) {}

  int run(const RankBody& body) {
    const std::size_t ranks = static_cast<std::size_t>(crew_.processes * crew_.threads);
    void* memory =
        mmap(nullptr, ranks * sizeof(RankStatus), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return complain(std::string("mmap: ") + std::strerror(errno));
    statuses_ = static_cast<RankStatus*>(memory);
    for (std::size_t i = 0; i < ranks; ++i) new (statuses_ + i) RankStatus;

    sigset_t before;
    sigemptyset(&watched_);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&watched_, signal);
    sigprocmask(SIG_BLOCK, &watched_, &before);
    // A shell without job control starts background commands with SIGINT ignored; `kill -INT` shall end us
    // even so.
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) std::signal(signal, SIG_DFL);
    std::fflush(nullptr);
    const pid_t parent = getpid();
    for (int i = 0; i < crew_.processes; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(kChildFailed);
        sigprocmask(SIG_SETMASK, &before, nullptr);
        run_process(i, body);
      }
      if (pid < 0) {
        const std::string reason = std::strerror(errno);
        end_all();
        return complain("fork: " + reason);
      }
      children_[static_cast<std::size_t>(i)] = {pid, true, 0};
    }
    Verdict verdict = watch();
    end_all();  // the signals stay blocked: a second one must not take the exit code away
    if (isatty(STDERR_FILENO) != 0 && verdict.exit_code != 0)
      std::fputs("\r\033[K", stderr);  // a progress line
    if (!verdict.line.empty()) std::fprintf(stderr, "pkcomm-perf: %s\n", verdict.line.c_str());
    return verdict.exit_code;
  }

 private:
  static int complain(const std::string& text) {
    std::fprintf(stderr, "pkcomm-perf: %s\n", text.c_str());
    return kExitFailed;
  }

  RankStatus& status(int process, int thread) const { return statuses_[process * crew_.threads + thread]; }

  [[noreturn]] void run_process(int process, const RankBody& body) {
    std::vector<int> codes(static_cast<std::size_t>(crew_.threads), 0);
    const auto run_rank = [&](int thread) {
      RankStatus& mine = status(process, thread);
      const Result<int> result = body(crew_.first_rank + process * crew_.threads + thread, mine);
      if (!result.ok()) {
        if (!mine.failed()) mine.fail(result.error().text, result.error().hearsay);
        std::fflush(nullptr);
        _exit(
            kChildFailed);  // the process's other ranks wait for this one: there is no other way to stop them
      }
      codes[static_cast<std::size_t>(thread)] = result.value();
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < crew_.threads; ++i) threads.emplace_back(run_rank, i);
    run_rank(0);
    for (std::thread& thread : threads) thread.join();
    int code = 0;
    for (const int each : codes) code = std::max(code, each);
    std::exit(code);
  }

  Verdict watch() {
    while (true) {
      const timespec tick{0, 100'000'000};
      const int signal = sigtimedwait(&watched_, nullptr, &tick);
      if (signal == SIGINT || signal == SIGTERM) return {128 + signal, {}, true};
      const bool fault = reap();
      if (fault) return after_fault();
      bool running = false;
      int code = 0;
      for (const Child& child : children_) {
        running = running || child.running;
        if (!child.running) code = std::max(code, WEXITSTATUS(child.wait_status));
      }
      if (!running) return {code, {}, true};
      if (Verdict late = check_time(); late.over) return late;
    }
  }

  // Collects who has ended; true if one of them did so badly.
  bool reap() {
    bool fault = false;
    for (Child& child : children_) {
      if (!child.running || waitpid(child.pid, &child.wait_status, WNOHANG) != child.pid) continue;
      child.running = false;
      const bool good = WIFEXITED(child.wait_status) && WEXITSTATUS(child.wait_status) != kChildFailed;
      fault = fault || !good;
    }
    return fault;
  }

  // A death makes the others fail, and any of them may be collected first: give the cause time to show.
  Verdict after_fault() {
    const timespec pause{0, 50'000'000};
    nanosleep(&pause, nullptr);
    reap();
    for (std::size_t i = 0; i < children_.size(); ++i) {
      const Child& child = children_[i];
      if (child.running || !WIFSIGNALED(child.wait_status)) continue;
      const int signal = WTERMSIG(child.wait_status);
      if (signal == SIGINT || signal == SIGTERM || signal == SIGPIPE) return {128 + signal, {}, true};
      return {kExitFailed,
              name(static_cast<int>(i)) + " (pid " + std::to_string(child.pid) + ") died of signal " +
                  std::to_string(signal) + " (" + strsignal(signal) + ")" + doing(static_cast<int>(i)),
              true};
    }
    std::string line;
    for (int i = 0; i < crew_.processes * crew_.threads; ++i) {
      if (!statuses_[i].failed()) continue;
      // What a rank heard of another is worth less than what it met itself.
      const bool hearsay = statuses_[i].hearsay();
      if (line.empty() || !hearsay) {
        line = "rank " + std::to_string(crew_.first_rank + i) + ": " + statuses_[i].text();
      }
      if (!hearsay) break;
    }
    return {kExitFailed, line.empty() ? "a rank process ended unexpectedly" : line, true};
  }

  Verdict check_time() const {
    constexpr std::int64_t kGraceMs = 2000;  // the library's own deadline comes first and says more
    if (crew_.timeout_s == 0) return {};
    const std::int64_t now = steady_ms();
    const std::int64_t limit = crew_.timeout_s * std::int64_t{1000} + kGraceMs;
    std::string late;
    int first = -1;
    for (int i = 0; i < crew_.processes * crew_.threads; ++i) {
      if (statuses_[i].running_ms(now) <= limit) continue;
      late += (late.empty() ? "" : ", ") + std::to_string(crew_.first_rank + i);
      if (first < 0) first = i;
    }
    if (first < 0) return {};
    return {kExitFailed,
            "time limit (-T) of " + std::to_string(crew_.timeout_s) + " s passed in " +
                statuses_[first].doing() + "; unfinished ranks: " + late,
            true};
  }

  std::string name(int process) const {
    const int first = crew_.first_rank + process * crew_.threads;
    if (crew_.threads == 1) return "rank " + std::to_string(first);
    return "ranks " + std::to_string(first) + "-" + std::to_string(first + crew_.threads - 1);
  }

  std::string doing(int process) const {
    const std::string text = status(process, 0).doing();
    return text.empty() ? "" : " in " + text;
  }

  void end_all() {
    for (Child& child : children_) {
      if (child.running) kill(child.pid, SIGKILL);
    }
    for (Child& child : children_) {
      if (child.running) waitpid(child.pid, &child.wait_status, 0);
      child.running = false;
    }
  }

  Crew crew_;
  std::vector<Child> children_;
  RankStatus* statuses_ = nullptr;
  sigset_t watched_{};
};

}  // namespace

int supervise(const Crew& crew, const RankBody& body) { return Supervisor(crew).run(body); }

}  // namespace pkcomm::perf
