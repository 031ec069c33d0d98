// One loop does all: it connects, accepts and reads greetings without blocking, so no order among the processes is
// needed and none can wait for another in a circle.
#include "bootstrap/mesh_connect.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <list>
#include <string>
#include <utility>

namespace pkcomm::bootstrap {
namespace {

constexpr int kSliceMs = 10;  // how often the loop looks at `cancelled` and tries again to connect
constexpr std::int64_t kGreetingMs = 10'000;  // sent right after connecting; allows for a starved machine

/// Either end's first bytes.
struct Greeting {
  std::uint64_t magic;
  Nonce nonce;
  std::int32_t from;
  std::int32_t to;
};
static_assert(sizeof(Greeting) == 32);
constexpr std::uint64_t kGreetingMagic = 0x316873656d6d6b70;  // "pkmmesh1"

/// Collects a greeting without blocking.
struct Incoming {
  PrivateFd fd;
  Deadline patience = Deadline::never();
  std::array<std::byte, sizeof(Greeting)> bytes = {};
  std::size_t got = 0;

  enum class State { kWaiting, kWhole, kClosed };
  State read() {
    while (got < bytes.size()) {
      const ssize_t more = ::recv(fd.get(), bytes.data() + got, bytes.size() - got, MSG_DONTWAIT);
      if (more < 0 && (errno == EAGAIN || errno == EINTR)) return State::kWaiting;
      if (more <= 0) return State::kClosed;
      got += static_cast<std::size_t>(more);
    }
    return State::kWhole;
  }
  Greeting greeting() const {
    Greeting greeting;
    std::memcpy(&greeting, bytes.data(), sizeof(greeting));
    return greeting;
  }
};

class Connector {
 public:
  Connector(const Table& table, int process, const Nonce& nonce, const Listener& listener)
      : table_(table),
        process_(process),
        nonce_(nonce),
        listener_(listener),
        done_(table.processes.size()),
        outgoing_(static_cast<std::size_t>(process)),
        missing_(static_cast<int>(table.processes.size()) - 1) {}

  Result<std::vector<PrivateFd>> run(Deadline deadline, const std::atomic<bool>* cancelled,
                                     const std::atomic<bool>* also_cancelled) {
    while (true) {
      for (int p = 0; p < process_; ++p) PK_TRY(advance(p));
      PK_TRY(accept_all());
      for (auto it = silent_.begin(); it != silent_.end();)
        it = admit(*it) ? silent_.erase(it) : std::next(it);
      if (missing_ == 0) return std::move(done_);
      if (is_raised(cancelled) || is_raised(also_cancelled)) {
        return Status(pkcommAborted, "start-up: the communicator was aborted");
      }
      if (deadline.passed()) return late(deadline);
      PK_TRY(wait(deadline));
    }
  }

 private:
  Greeting greeting_to(int process) const { return {kGreetingMagic, nonce_, process_, process}; }
  bool is_for_me(const Greeting& greeting) const {
    return greeting.magic == kGreetingMagic && greeting.nonce == nonce_ && greeting.to == process_;
  }
  PrivateFd& done(int process) { return done_[static_cast<std::size_t>(process)]; }
  Status gone(int process) const {
    return {pkcommRemoteError, "start-up: " + table_.name_of(process) + " died or gave up"};
  }

  /// Fits into the empty buffer of a new connection, so it is sent whole or the connection is gone.
  bool send(const PrivateFd& fd, int process) const {
    const Greeting greeting = greeting_to(process);
    return ::send(fd.get(), &greeting, sizeof(greeting), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(greeting);
  }

  /// Connects to a lower process, or reads on what it answers.
  Status advance(int process) {
    if (done(process)) return {};
    Incoming& answer = outgoing_[static_cast<std::size_t>(process)];
    if (!answer.fd) {
      Connected connected = connect_unix(table_.processes[static_cast<std::size_t>(process)].name);
      if (connected.error == ECONNREFUSED || connected.error == ENOENT) return gone(process);
      if (connected.error == EAGAIN) return {};  // its backlog is full
      if (!connected.fd) {
        return {pkcommSystemError, "start-up: cannot connect to " + table_.name_of(process) + ": " +
                                       std::strerror(connected.error)};
      }
      if (!send(connected.fd, process)) return {};
      answer = {std::move(connected.fd)};
    }
    switch (answer.read()) {
      case Incoming::State::kWaiting:
        return {};
      case Incoming::State::
          kClosed:  // dropped for want of room: once more. If the process is gone, that will tell
        answer = {};
        return {};
      case Incoming::State::kWhole:
        break;
    }
    const Greeting greeting = answer.greeting();
    if (!is_for_me(greeting) || greeting.from != process)
      return gone(process);  // its name has another owner now
    done(process) = std::move(answer.fd);
    --missing_;
    return {};
  }

  Status accept_all() {
    while (true) {
      PrivateFd fd = listener_.accept();
      if (fd) {
        // As many again as there are processes, who may all be between connecting and greeting.
        if (silent_.size() >= most_silent_connections() + done_.size()) silent_.pop_front();
        silent_.push_back({std::move(fd), Deadline::after_ms(kGreetingMs)});
      } else if (errno == EAGAIN) {
        return {};
      } else if ((errno == EMFILE || errno == ENFILE) && !silent_.empty()) {
        silent_.pop_front();
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return {pkcommSystemError, "start-up: cannot accept " + std::to_string(missing_) +
                                       " more connections: " + std::strerror(errno)};
      }
    }
  }

  /// True: `incoming` needs no more attention, since it has become a connection or was a stray.
  bool admit(Incoming& incoming) {
    const Incoming::State state = incoming.read();
    if (state == Incoming::State::kWaiting) return incoming.patience.passed();
    if (state == Incoming::State::kClosed) return true;
    const Greeting greeting = incoming.greeting();
    const bool valid = is_for_me(greeting) && greeting.from > process_ &&
                       greeting.from < static_cast<int>(done_.size()) && !done(greeting.from);
    if (!valid || !send(incoming.fd, greeting.from)) return true;
    done(greeting.from) = std::move(incoming.fd);
    --missing_;
    return true;
  }

  Status wait(Deadline deadline) {
    std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
    for (const Incoming& incoming : silent_) polled.push_back({incoming.fd.get(), POLLIN, 0});
    for (const Incoming& answer : outgoing_) {
      if (answer.fd) polled.push_back({answer.fd.get(), POLLIN, 0});
    }
    // Nobody leaves before all are connected: a hang-up now is a process that died or gave up.
    const std::size_t first = polled.size();
    std::vector<int> connected;
    for (int p = 0; p < static_cast<int>(done_.size()); ++p) {
      if (!done(p)) continue;
      polled.push_back({done(p).get(), 0, 0});
      connected.push_back(p);
    }
    ::poll(polled.data(), polled.size(), deadline.poll_timeout_ms(kSliceMs));
    for (std::size_t i = first; i < polled.size(); ++i) {
      if ((polled[i].revents & (POLLHUP | POLLERR)) != 0) return gone(connected[i - first]);
    }
    return {};
  }

  Status late(Deadline deadline) {
    std::string names;
    for (int p = 0; p < static_cast<int>(done_.size()); ++p) {
      if (p == process_ || done(p)) continue;
      names += (names.empty() ? "" : ", ") + table_.name_of(p);
    }
    return {pkcommTimeout, "start-up: no connection with " + names + " within " +
                               std::to_string(deadline.limit_ms()) + " ms"};
  }

  const Table& table_;
  const int process_;
  const Nonce nonce_;
  const Listener& listener_;
  std::vector<PrivateFd> done_;     // by process
  std::vector<Incoming> outgoing_;  // to lower processes, until they have answered
  std::list<Incoming> silent_;      // accepted, without a greeting yet
  int missing_;
};

}  // namespace

Result<std::vector<PrivateFd>> connect_mesh(const Table& table, int process, const Nonce& nonce,
                                            const Listener& listener, Deadline deadline,
                                            const std::atomic<bool>* cancelled,
                                            const std::atomic<bool>* also_cancelled) {
  return Connector(table, process, nonce, listener).run(deadline, cancelled, also_cancelled);
}

}  // namespace pkcomm::bootstrap
