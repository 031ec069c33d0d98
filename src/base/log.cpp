// The logger behind base/log.hpp; the one file that includes spdlog. A logger belongs to a process: a forked child
// finds that the process id has changed and makes its own (its own file, and no lock that some thread of the parent
// held), which is why nothing here is a function-local static and why old loggers are never freed.
#include "base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#define SPDLOG_NO_TLS  // a cached thread id would be the parent's after fork()
#define SPDLOG_LEVEL_NAMES \
  { "trace", "debug", "info", "warn", "error", "critical", "off" }
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include "base/environment.hpp"

namespace pkcomm {
namespace {

/// Writes each line by one write(2), so that lines of several processes in one file stay whole.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LineSink(int fd) : fd_(fd) {}
  ~LineSink() override {
    if (fd_ != STDERR_FILENO) close(fd_);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const char* data = line.data();
    std::size_t left = line.size();
    while (left > 0) {
      const ssize_t written = write(fd_, data, left);
      if (written < 0 && errno != EINTR) return;  // a full disk or a closed pipe is not the caller's failure
      if (written > 0) {
        data += written;
        left -= static_cast<std::size_t>(written);
      }
    }
  }
  void flush_() override {}

 private:
  int fd_;
};

/// Time of day in UTC. spdlog's own would call localtime(), whose lock a forked child may find held for ever.
class UtcTime final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::microseconds>(message.time) -
                                     std::chrono::floor<std::chrono::days>(message.time));
    fmt::format_to(std::back_inserter(line), "{:02}:{:02}:{:02}.{:06}", time.hours().count(),
                   time.minutes().count(), time.seconds().count(), time.subseconds().count());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<UtcTime>(); }
};

struct Logger {
  Logger(pid_t owner, spdlog::logger output) : pid(owner), lines(std::move(output)) {}
  pid_t pid;
  spdlog::logger lines;
  std::mutex mutex;  // guards said
  std::set<std::string, std::less<>> said;
};

// Trivially destructible, so that a line logged by a static destructor still finds the logger.
std::atomic<Logger*> current_logger{nullptr};

// What log_enabled() answers from, without a system call; -1 until the first logger has read PKCOMM_LOG.
std::atomic<int> current_threshold{-1};

constexpr spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::err;
}

std::string expand_file_name(std::string_view pattern) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') {
      name += host.data();
    } else if (next == 'p') {
      name += std::to_string(getpid());
    } else if (next == '%') {
      name += '%';
    } else {
      name += pattern[i];
      continue;
    }
    ++i;
  }
  return name;
}

/// The descriptor to write to; says in `complaint` why it is stderr though a file was asked for.
int open_output(std::string& complaint) {
  const auto pattern = environment::read(environment::Var::kLogFile);
  if (!pattern.value) return STDERR_FILENO;
  const std::string name = expand_file_name(pattern.value->text);
  const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd >= 0) return fd;
  complaint =
      "PKCOMM_LOG_FILE=\"" + pattern.value->text + "\": cannot open " + name + ": " + std::strerror(errno);
  complaint += "; using stderr";
  return STDERR_FILENO;
}

std::unique_ptr<Logger> make_logger(std::array<std::string, 2>& complaints) {
  const auto level = environment::read(environment::Var::kLog);
  complaints[0] = level.complaint;
  const auto threshold = level.value ? static_cast<LogLevel>(level.value->number) : LogLevel::kWarn;

  spdlog::logger lines("pkcomm", std::make_shared<LineSink>(open_output(complaints[1])));
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<UtcTime>('*').set_pattern("%* pkcomm[%P:%t] %l: %v");
  lines.set_formatter(std::move(formatter));
  lines.set_level(spdlog_level(threshold));
  // Relaxed: the number stands for itself, and every logger of this environment stores the same one.
  current_threshold.store(static_cast<int>(threshold), std::memory_order_relaxed);
  // spdlog would print its own failures to stderr in another format; a line that cannot be written is dropped.
  lines.set_error_handler([](const std::string&) {});
  return std::make_unique<Logger>(getpid(), std::move(lines));
}

Logger& logger() {
  Logger* known = current_logger.load(std::memory_order_acquire);  // pairs with the exchange below
  if (known != nullptr && known->pid == getpid()) return *known;
  std::array<std::string, 2> complaints;
  std::unique_ptr<Logger> fresh = make_logger(complaints);
  // Two threads may come here at once: one publishes, the other takes what was published.
  if (!current_logger.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) return *known;
  for (const std::string& complaint : complaints) {
    if (!complaint.empty()) fresh->lines.warn("{}", complaint);
  }
  return *fresh.release();
}

std::string one_line(std::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    if (c == '\n' || c == '\r') {
      line += c == '\n' ? "\\n" : "\\r";
    } else {
      line += c;
    }
  }
  return line;
}

/// Runs `f`, which may allocate; a line lost for want of memory must not become an exception or change errno.
template <typename F>
void quietly(const F& f) noexcept {
  const int saved = errno;
  try {
    f();
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is nowhere left to report to
  }
  errno = saved;
}

}  // namespace

bool log_enabled(LogLevel level) noexcept {
  if (current_threshold.load(std::memory_order_relaxed) < 0) {
    quietly([] { logger(); });
  }
  return static_cast<int>(level) <= current_threshold.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message) noexcept {
  if (!log_enabled(level)) return;
  quietly([&] { logger().lines.log(spdlog_level(level), "{}", one_line(message)); });
}

void log_once(std::string_view key, LogLevel level, std::string_view message) noexcept {
  if (!log_enabled(level)) return;
  quietly([&] {
    Logger& target = logger();
    {
      const std::lock_guard lock(target.mutex);
      if (!target.said.emplace(key).second) return;
    }
    target.lines.log(spdlog_level(level), "{}", one_line(message));
  });
}

void log_if_failed(const Status& status) noexcept {
  if (!status.ok()) log(LogLevel::kWarn, status.message());
}

}  // namespace pkcomm
