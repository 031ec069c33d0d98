// One epoll instance and one thread, started for the first watch and ended after the last, so that a process without
// connections has neither and the library can be unloaded.
#include "bootstrap/monitor.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "base/process.hpp"
#include "bootstrap/private_fd.hpp"

namespace pkcomm::bootstrap {

class Monitor {
 public:
  Status add(const std::shared_ptr<Watch>& watch, const std::vector<Watch::Connection>& connections);
  void remove(const Watch* watch);

 private:
  struct Entry {
    std::shared_ptr<Watch> watch;
    Watch::Connection connection;
  };
  static constexpr std::uint64_t kWakeKey = 0;

  Status start_if_first();
  void stop_if_last();
  void forget(const Watch* watch);  // under lifecycle_mutex_
  void run(int epoll_fd);
  void hung_up(std::uint64_t key);

  // `lifecycle_mutex_` is taken first and held while the thread starts or ends; the thread itself takes `mutex_`
  // only.
  std::mutex lifecycle_mutex_;
  int watches_ = 0;
  std::thread thread_;
  PrivateFd epoll_;
  PrivateFd wake_;

  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;  // by a key that is never used twice, unlike a descriptor's number
  std::uint64_t next_key_ = kWakeKey + 1;
};

namespace {

PerProcess<Monitor> monitor;

Status system_error(const char* call) {
  return {pkcommSystemError, std::string(call) + ": " + std::strerror(errno)};
}

}  // namespace

Status Monitor::start_if_first() {
  if (watches_ > 0) return {};
  PrivateFd epoll = PrivateFd::create([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  if (!epoll) return system_error("epoll_create1");
  PrivateFd wake = PrivateFd::create([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!wake) return system_error("eventfd");
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWakeKey;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) return system_error("epoll_ctl");
  PK_ASSIGN(thread_, start_thread("pkcomm-monitor", [this, fd = epoll.get()] { run(fd); }));
  epoll_ = std::move(epoll);
  wake_ = std::move(wake);
  return {};
}

void Monitor::stop_if_last() {
  if (watches_ > 0) return;
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
  epoll_.reset();
  wake_.reset();
}

Status Monitor::add(const std::shared_ptr<Watch>& watch, const std::vector<Watch::Connection>& connections) {
  const std::lock_guard lifecycle(lifecycle_mutex_);
  PK_TRY(start_if_first());
  ++watches_;
  for (const Watch::Connection& connection : connections) {
    std::unique_lock lock(mutex_);
    const std::uint64_t key = next_key_++;
    entries_.emplace(key, Entry{watch, connection});
    lock.unlock();
    epoll_event event = {};
    event.events = EPOLLRDHUP;  // EPOLLHUP and EPOLLERR come unasked
    event.data.u64 = key;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd, &event) != 0) {
      Status status = system_error("epoll_ctl");
      forget(watch.get());
      return status;
    }
  }
  return {};
}

void Monitor::remove(const Watch* watch) {
  const std::lock_guard lifecycle(lifecycle_mutex_);
  forget(watch);
}

void Monitor::forget(const Watch* watch) {
  {
    const std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->second.watch.get() != watch) {
        ++it;
        continue;
      }
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.connection.fd, nullptr);
      it = entries_.erase(it);
    }
  }
  --watches_;
  stop_if_last();
}

void Monitor::run(int epoll_fd) {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = ::epoll_wait(epoll_fd, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
      if (key == kWakeKey) return;
      hung_up(key);
    }
  }
}

void Monitor::hung_up(std::uint64_t key) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;  // stopped meanwhile
  const Entry entry = std::move(found->second);
  entries_.erase(found);
  // Under the lock: `remove` has not run for this watch yet, so the descriptor is still the connection's.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry.connection.fd, nullptr);
  lock.unlock();
  entry.watch->report(entry.connection.process);
}

void Watch::report(int process) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) lost_(process);
}

Result<std::shared_ptr<Watch>> Watch::start(const std::vector<Connection>& connections,
                                            std::function<void(int process)> lost) {
  std::shared_ptr<Watch> watch(new Watch(std::move(lost)));
  PK_TRY(monitor.get().add(watch, connections));
  return watch;
}

void Watch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  monitor.get().remove(this);
}

}  // namespace pkcomm::bootstrap
