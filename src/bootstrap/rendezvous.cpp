// The thread's loop is written so that nothing a stray does costs more than its own connection: reads and writes
// never block, a hello has one size, who says nothing in time is dropped, and where descriptors run out the one that
// has been silent longest goes first.
#include "bootstrap/rendezvous.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "base/process.hpp"

namespace pkcomm::bootstrap {
namespace {

constexpr std::int64_t kHelloMs =
    10'000;  // a rank sends it with the connection; this allows for a starved machine
constexpr std::int64_t kLingerMs =
    10'000;  // after a failure, for ranks that are yet to come: the skew of start-up
constexpr std::int64_t kFlushMs = 2'000;  // after success, for a rank that does not read its answer
constexpr std::int64_t kPauseMs = 20;     // between attempts to accept without free descriptors
constexpr std::int64_t kSliceMs = 10;     // how often a local rank looks at `cancelled`

struct OpenList {
  std::mutex mutex;
  std::map<Nonce, std::shared_ptr<Rendezvous>> open;
};
PerProcess<OpenList> open_list;

void append(std::vector<std::byte>& out, ReplyHeader::Kind kind, const std::vector<std::byte>& payload) {
  const ReplyHeader header = {kReplyMagic, kind, static_cast<std::uint32_t>(payload.size())};
  const auto* begin = reinterpret_cast<const std::byte*>(&header);
  out.insert(out.end(), begin, begin + sizeof(header));
  out.insert(out.end(), payload.begin(), payload.end());
}

}  // namespace

Status Rendezvous::open(const Nonce& nonce, Listeners listeners, std::int64_t unused_ms) {
  auto self = std::make_shared<Rendezvous>(nonce);
  self->listeners_ = std::move(listeners);
  self->wake_ = PrivateFd::create([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!self->wake_) return {pkcommSystemError, std::string("eventfd: ") + std::strerror(errno)};
  OpenList& list = open_list.get();
  const std::lock_guard lock(list.mutex);
  const std::lock_guard thread_lock(self->thread_mutex_);
  PK_ASSIGN(self->thread_, start_thread("pkcomm-listen", [self, unused_ms] { self->run(unused_ms); }));
  list.open.emplace(nonce, self);
  return {};
}

std::shared_ptr<Rendezvous> Rendezvous::find(const Nonce& nonce) {
  OpenList& list = open_list.get();
  const std::lock_guard lock(list.mutex);
  const auto found = list.open.find(nonce);
  if (found == list.open.end()) return nullptr;
  found->second->adopted_ = true;
  return found->second;
}

void Rendezvous::retire() {
  std::thread thread;
  {
    const std::lock_guard lock(thread_mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Rendezvous::abandon() {
  const std::lock_guard lock(thread_mutex_);
  if (thread_.joinable()) thread_.detach();
}

Result<Outcome> Rendezvous::join(Hello hello, Deadline deadline, const std::atomic<bool>* cancelled) {
  const int rank = hello.rank;
  seal(hello, deadline.limit_ms(), deadline.is_never() ? 0 : deadline.remaining_ms());
  std::unique_lock lock(mutex_);
  if (roster_.served()) return Status(pkcommInvalidUsage, kServed);
  roster_.add(hello);
  changed_.notify_all();
  ::eventfd_write(wake_.get(), 1);  // the thread's next deadline may be nearer now, or the end reached
  while (!roster_.ended()) {
    if (is_raised(cancelled)) {
      roster_.lost(rank);
      changed_.notify_all();
      ::eventfd_write(wake_.get(), 1);
      return Status(pkcommAborted, "start-up: the communicator was aborted");
    }
    // The thread watches the deadlines, this rank's among them.
    if (cancelled == nullptr) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(kSliceMs));
    }
  }
  // After a failure this process may end at once: the ranks elsewhere are answered first.
  if (!roster_.served()) {
    changed_.wait_for(lock, std::chrono::milliseconds(kFlushMs), [this] { return answered_; });
  }
  return roster_.outcome();
}

void Rendezvous::run(std::int64_t unused_ms) {
  const Deadline unused = Deadline::after_ms(unused_ms);
  Deadline linger = Deadline::never();
  while (!over(unused, linger)) {
    wait(unused, linger);
    std::uint64_t wakes = 0;
    (void)::eventfd_read(wake_.get(), &wakes);
    short_of_descriptors_ = false;
    accept_all(listeners_.local);
    if (listeners_.tcp) accept_all(listeners_.tcp);
    for (Connection& connection : connections_) {
      read(connection);
      if (connection.rank < 0 && !connection.closed && connection.patience.passed()) {
        drop_stray(connection, "silence");
      }
    }
    {
      const std::lock_guard lock(mutex_);
      roster_.expire();
      if (roster_.ended()) changed_.notify_all();
    }
    tell_all();
    for (Connection& connection : connections_) write(connection);
    connections_.remove_if([](const Connection& connection) { return connection.closed; });
  }
  finish();
}

/// After success: when all answers are out. After a failure: when no rank is left that could still come, or after a
/// while. Unused: after `unused_ms`.
bool Rendezvous::over(const Deadline& unused, Deadline& linger) {
  const std::lock_guard lock(mutex_);
  if (!roster_.ended()) return !roster_.anybody_came() && unused.passed();
  const bool success = roster_.served();
  if (linger.is_never()) linger = Deadline::after_ms(success ? kFlushMs : kLingerMs);
  const bool flushed =
      std::all_of(connections_.begin(), connections_.end(), [](const Connection& connection) {
        return connection.rank < 0 || connection.closed ||
               (connection.told && connection.sent == connection.out.size());
      });
  if (flushed && !answered_) {
    answered_ = true;
    changed_.notify_all();
  }
  return linger.passed() || (flushed && (success || roster_.all_came()));
}

void Rendezvous::finish() {
  listeners_ = {};
  connections_.clear();
  {
    // A rank of this process may have found the rendezvous just before: it must not wait for a thread that is gone.
    const std::lock_guard lock(mutex_);
    wake_.reset();
    roster_.close();
    answered_ = true;
    changed_.notify_all();
  }
  OpenList& list = open_list.get();
  const std::lock_guard lock(list.mutex);
  const auto self = list.open.extract(nonce_);
  // Nobody knows of this thread any more and nobody will join it.
  if (!adopted_) abandon();
}

void Rendezvous::wait(const Deadline& unused, const Deadline& linger) {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  if (!short_of_descriptors_) {
    polled.push_back({listeners_.local.get(), POLLIN, 0});
    if (listeners_.tcp) polled.push_back({listeners_.tcp.get(), POLLIN, 0});
  }
  Deadline next = linger;
  for (const Connection& connection : connections_) {
    const bool writing = connection.sent < connection.out.size();
    polled.push_back({connection.fd.get(), static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN), 0});
    if (connection.rank < 0 && connection.patience.time() < next.time()) next = connection.patience;
  }
  {
    const std::lock_guard lock(mutex_);
    const Deadline joined = roster_.anybody_came() ? roster_.deadline() : unused;
    if (!roster_.ended() && joined.time() < next.time()) next = joined;
  }
  if (short_of_descriptors_) next = next.sooner(kPauseMs);
  ::poll(polled.data(), polled.size(), next.poll_timeout_ms());
}

void Rendezvous::accept_all(const Listener& listener) {
  while (true) {
    PrivateFd fd = listener.accept();
    if (fd) {
      make_room();
      connections_.push_back({std::move(fd), Deadline::after_ms(kHelloMs), {}, {}});
      read(connections_.back());
    } else if (errno == EMFILE || errno == ENFILE) {
      short_of_descriptors_ = true;
      const auto silent = std::find_if(connections_.begin(), connections_.end(),
                                       [](const Connection& connection) { return connection.rank < 0; });
      if (silent == connections_.end()) return;
      drop_stray(*silent, "too many connections for this process's descriptors");
      connections_.erase(silent);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

/// Keeps the number of connections that have not proven themselves within bounds; the oldest goes.
void Rendezvous::make_room() {
  std::size_t silent = 0;
  auto oldest = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    if (it->rank >= 0 || it->closed) continue;
    if (silent++ == 0) oldest = it;
  }
  if (silent >= most_silent_connections()) {
    drop_stray(*oldest, "too many connections");
    connections_.erase(oldest);
  }
}

void Rendezvous::read(Connection& connection) {
  while (!connection.closed) {
    std::byte buffer[sizeof(Hello)];
    // A rank says nothing after its hello; only its end matters.
    const std::size_t room = connection.rank < 0 ? sizeof(Hello) - connection.in.size() : sizeof(buffer);
    const ssize_t got = ::recv(connection.fd.get(), buffer, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      if (connection.rank >= 0) {
        const std::lock_guard lock(mutex_);
        roster_.lost(connection.rank);
      } else if (!connection.in.empty()) {
        drop_stray(connection, "a hello in part");
      }
      connection.closed = true;
      connection.fd.reset();
      return;
    }
    if (connection.rank >= 0) continue;
    connection.in.insert(connection.in.end(), buffer, buffer + got);
    greet(connection);
  }
}

void Rendezvous::greet(Connection& connection) {
  Hello hello = {};
  switch (parse_hello(connection.in, nonce_, hello)) {
    case HelloState::kIncomplete:
      return;
    case HelloState::kForeign:
      return drop_stray(connection, "bytes that are no hello");
    case HelloState::kOtherVersion:
    case HelloState::kGood:
      break;
  }
  const bool same_version = hello.version == kProtocolVersion;
  connection.rank = same_version ? hello.rank : 0;
  append(connection.out, ReplyHeader::kAccepted, {});
  const std::lock_guard lock(mutex_);
  if (roster_.served()) {
    Outcome refused;
    refused.failure = {pkcommInvalidUsage, kServed};
    append(connection.out, ReplyHeader::kOutcome, encode(refused));
    connection.told = true;
  } else if (same_version) {
    roster_.add(hello);
  } else {
    roster_.add_other_version(hello.version);
  }
}

void Rendezvous::tell_all() {
  std::vector<std::byte> payload;
  {
    const std::lock_guard lock(mutex_);
    if (!roster_.ended()) return;
    payload = encode(roster_.outcome());
  }
  for (Connection& connection : connections_) {
    if (connection.rank < 0 || connection.told) continue;
    append(connection.out, ReplyHeader::kOutcome, payload);
    connection.told = true;
  }
}

void Rendezvous::write(Connection& connection) {
  while (!connection.closed && connection.sent < connection.out.size()) {
    const ssize_t sent = ::send(connection.fd.get(), connection.out.data() + connection.sent,
                                connection.out.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      connection.sent += static_cast<std::size_t>(sent);
    } else if (errno != EINTR) {
      return;  // full, or closed: `read` sees the latter
    }
  }
}

void Rendezvous::drop_stray(Connection& connection, const char* why) {
  connection.closed = true;
  connection.fd.reset();
  log(warned_ ? LogLevel::kDebug : LogLevel::kWarn,
      std::string("start-up: dropped a connection that is no rank's: ") + why);
  warned_ = true;
}

}  // namespace pkcomm::bootstrap
