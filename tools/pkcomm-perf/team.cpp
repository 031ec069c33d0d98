// Abstract Unix names vanish with their last holder, so nothing is left behind. Anybody on the machine may
// connect to one: the kernel tells the caller's user, and a greeting tells the rest; who fails either is
// dropped and forgotten.
#include "team.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace pkcomm::perf {

namespace {

using Clock = std::chrono::steady_clock;

struct Greeting {
  std::uint64_t magic = 0x316672657063706bu;  // "kpcperf1"
  std::int32_t version = PKCOMM_VERSION;
  std::int32_t nranks = 0;
  std::int32_t rank = 0;
  std::int32_t reserved = 0;
};

// Owns a descriptor until it is released.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

Outcome send_all(int fd, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Error{system_error("send")};
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return {};
}

Outcome receive_all(int fd, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return Error{"it has left"};
    if (got < 0) return Error{errno == EAGAIN ? "no word from it in time" : system_error("receive")};
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return {};
}

void set_timeout(int fd, int seconds) {
  const timeval limit{seconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

socklen_t abstract_address(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);  // the leading zero says "abstract"
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

bool same_user(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

// Either listens at the meeting point or connects to it. `*again` tells whether a failure may pass by itself.
Result<int> open_socket(const MeetingPoint& where, bool listening, bool* again) {
  *again = !listening;
  const auto try_address = [&](int family, const sockaddr* address, socklen_t length) -> Result<int> {
    Descriptor fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) return Error{system_error("socket")};
    if (family != AF_UNIX) {
      const int on = 1;
      if (listening) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    const int result = listening ? bind(fd.get(), address, length) : connect(fd.get(), address, length);
    if (result != 0) return Error{system_error(listening ? "bind" : "connect")};
    constexpr int kBacklog = 1024;  // the most ranks
    if (listening && listen(fd.get(), kBacklog) != 0) return Error{system_error("listen")};
    return fd.release();
  };
  if (where.host.empty()) {
    sockaddr_un address;
    const socklen_t length = abstract_address(where.name, address);
    return try_address(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), length);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = listening ? AI_PASSIVE : 0;
  addrinfo* list = nullptr;
  if (const int code = getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &list); code != 0) {
    *again = false;
    return Error{gai_strerror(code)};
  }
  Result<int> opened = Error{"no address"};
  for (const addrinfo* entry = list; entry != nullptr && !opened.ok(); entry = entry->ai_next) {
    opened = try_address(entry->ai_family, entry->ai_addr, entry->ai_addrlen);
  }
  freeaddrinfo(list);
  return opened;
}

std::string in_words(const MeetingPoint& where) {
  return where.host.empty() ? "the abstract Unix socket " + where.name : where.host + ":" + where.port;
}

std::string missing_ranks(const std::vector<int>& sockets) {
  std::string text;
  int missing = 0;
  constexpr int kNamed = 16;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (sockets[i] < 0 && missing++ < kNamed) text += (text.empty() ? "" : ", ") + std::to_string(i + 1);
  }
  return missing > kNamed ? text + " and " + std::to_string(missing - kNamed) + " more" : text;
}

// Takes one caller in, or drops it.
Outcome admit(int listener, bool local, int nranks, std::vector<int>& sockets) {
  Descriptor caller(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (caller.get() < 0 || (local && !same_user(caller.get()))) return {};
  constexpr int kGreetingSeconds = 2;
  set_timeout(caller.get(), kGreetingSeconds);
  Greeting greeting;
  if (!receive_all(caller.get(), &greeting, sizeof greeting).ok() || greeting.magic != Greeting{}.magic)
    return {};
  if (greeting.version != PKCOMM_VERSION) return Error{"a rank runs another version of pkcomm-perf"};
  if (greeting.nranks != nranks) {
    return Error{"a rank counts " + std::to_string(greeting.nranks) + " ranks, rank 0 counts " +
                 std::to_string(nranks) + ": give all the same -g and -t"};
  }
  if (greeting.rank < 1 || greeting.rank >= nranks ||
      sockets[static_cast<std::size_t>(greeting.rank - 1)] >= 0) {
    return Error{"two processes are rank " + std::to_string(greeting.rank)};
  }
  sockets[static_cast<std::size_t>(greeting.rank - 1)] = caller.release();
  return {};
}

}  // namespace

Result<MeetingPoint> parse_meeting_point(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const bool digits =
      !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (host.empty() || !digits || std::stoi(port) < 1 || std::stoi(port) > 65535) {
    return Error{"'" + text + "': expected host:port with a port from 1 to 65535"};
  }
  return MeetingPoint{host, port, {}};
}

MeetingPoint meeting_point_of(const std::string& job) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a, 64 bits: names must not depend on the C++ library
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return {"", "", "pkcomm-perf." + std::to_string(geteuid()) + "." + std::to_string(hash)};
}

Result<Team> Team::join(const MeetingPoint& where, int rank, int nranks, int timeout_s) {
  Team team(rank, nranks);
  if (nranks == 1) return team;
  const auto deadline = Clock::now() + std::chrono::seconds(timeout_s);
  bool again = false;
  constexpr int kSilenceSeconds = 24 * 3600;  // the library's deadlines and -T are what end a run
  const bool local = where.host.empty();

  if (rank == 0) {
    Result<int> opened = open_socket(where, true, &again);
    if (!opened.ok()) return Error{"cannot listen at " + in_words(where) + ": " + opened.error().text};
    const Descriptor listener(opened.value());
    team.sockets_.assign(static_cast<std::size_t>(nranks - 1), -1);
    while (std::count(team.sockets_.begin(), team.sockets_.end(), -1) > 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd waiting{listener.get(), POLLIN, 0};
      if (left <= 0) {
        return Error{"within " + std::to_string(timeout_s) + " s rank 0 did not hear from ranks " +
                     missing_ranks(team.sockets_) + " at " + in_words(where) +
                     " (--launcher none runs without them)"};
      }
      if (poll(&waiting, 1, static_cast<int>(left)) > 0)
        PERF_TRY(admit(listener.get(), local, nranks, team.sockets_));
    }
  } else {
    Result<int> opened = open_socket(where, false, &again);
    while (!opened.ok() && again && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      opened = open_socket(where, false, &again);
    }
    if (!opened.ok()) {
      return Error{"cannot reach rank 0 at " + in_words(where) + ": " + opened.error().text};
    }
    team.sockets_.push_back(opened.value());
    if (local && !same_user(opened.value())) return Error{"another user holds " + in_words(where)};
    Greeting greeting;
    greeting.nranks = nranks;
    greeting.rank = rank;
    PERF_TRY(send_all(opened.value(), &greeting, sizeof greeting));
  }
  for (const int fd : team.sockets_) set_timeout(fd, kSilenceSeconds);
  return team;
}

Team::Team(Team&& other) noexcept
    : rank_(other.rank_), nranks_(other.nranks_), sockets_(std::exchange(other.sockets_, {})) {}

Team::~Team() {
  for (const int fd : sockets_) {
    if (fd >= 0) close(fd);
  }
}

std::string Team::who(std::size_t socket) const {
  return "rank " + std::to_string(rank_ == 0 ? socket + 1 : 0);
}

Outcome Team::gather(const void* mine, std::size_t bytes, void* all) {
  if (rank_ != 0) {
    if (const Outcome sent = send_all(sockets_[0], mine, bytes); !sent.ok()) {
      return Error{"waiting for rank 0: " + sent.error().text, true};
    }
    return {};
  }
  std::byte* out = static_cast<std::byte*>(all);
  if (bytes > 0) std::memcpy(out, mine, bytes);
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    if (const Outcome got = receive_all(sockets_[i], out + (i + 1) * bytes, bytes); !got.ok()) {
      return Error{"waiting for " + who(i) + ": " + got.error().text, true};
    }
  }
  return {};
}

Outcome Team::broadcast(void* data, std::size_t bytes) {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const Outcome done =
        rank_ == 0 ? send_all(sockets_[i], data, bytes) : receive_all(sockets_[i], data, bytes);
    if (!done.ok()) return Error{"waiting for " + who(i) + ": " + done.error().text, true};
  }
  return {};
}

Outcome Team::barrier() {
  char token = 0;
  std::vector<char> tokens(static_cast<std::size_t>(nranks_));
  PERF_TRY(gather(&token, sizeof token, tokens.data()));
  return broadcast(&token, sizeof token);
}

}  // namespace pkcomm::perf
