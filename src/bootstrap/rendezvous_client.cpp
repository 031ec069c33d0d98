// Before the listener has accepted the hello, a closed connection means nothing (it may have been short of
// descriptors) and is tried again; after that it means that the listener's process is gone.
#include "bootstrap/rendezvous_client.hpp"

#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/endpoint.hpp"
#include "bootstrap/interfaces.hpp"

namespace pkcomm::bootstrap {
namespace {

constexpr int kSliceMs = 10;               // how often a wait looks at `cancelled`
constexpr std::int64_t kConnectMs = 1000;  // one attempt by TCP; the next may find a route that works
constexpr std::int64_t kMostPauseMs = 50;  // between attempts
// The listener answers when the deadline passes, with the ranks that are missing; this long the answer may take.
constexpr std::int64_t kAnswerMs = 500;

sockaddr_storage tcp_address(const IdContent& id, socklen_t& bytes) {
  sockaddr_storage address = {};
  if (id.family == AF_INET) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(id.port);
    std::memcpy(&v4.sin_addr, id.address, sizeof(v4.sin_addr));
    std::memcpy(&address, &v4, bytes = sizeof(v4));
  } else {
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(id.port);
    v6.sin6_scope_id = id.scope;
    std::memcpy(&v6.sin6_addr, id.address, sizeof(v6.sin6_addr));
    std::memcpy(&address, &v6, bytes = sizeof(v6));
  }
  return address;
}

/// A conversation with the listener, or with whoever answers in its place.
class Conversation {
 public:
  Conversation(PrivateFd fd, Deadline deadline, const std::atomic<bool>* cancelled)
      : fd_(std::move(fd)), deadline_(deadline), cancelled_(cancelled) {}

  enum class End { kDone, kClosed, kLate, kCancelled };
  End send(const Hello& hello) {
    const auto* data = reinterpret_cast<const char*>(&hello);
    for (std::size_t sent = 0; sent < sizeof(hello);) {
      const ssize_t bytes = ::send(fd_.get(), data + sent, sizeof(hello) - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (bytes > 0) sent += static_cast<std::size_t>(bytes);
      if (bytes < 0 && errno != EAGAIN && errno != EINTR) return End::kClosed;
      if (const End end = wait(bytes < 0 ? POLLOUT : 0, deadline_); end != End::kDone) return end;
    }
    return End::kDone;
  }

  /// The next reply. Whoever sends anything else counts as closed.
  End receive(ReplyHeader& header, std::vector<std::byte>& payload, Deadline deadline) {
    if (const End end = read(&header, sizeof(header), deadline); end != End::kDone) return end;
    if (header.magic != kReplyMagic || header.bytes > kMaxReplyBytes) return End::kClosed;
    payload.resize(header.bytes);
    return read(payload.data(), payload.size(), deadline);
  }

 private:
  End read(void* data, std::size_t bytes, Deadline deadline) {
    for (std::size_t got = 0; got < bytes;) {
      const ssize_t more = ::recv(fd_.get(), static_cast<char*>(data) + got, bytes - got, MSG_DONTWAIT);
      if (more > 0) {
        got += static_cast<std::size_t>(more);
        continue;
      }
      if (more == 0 || (errno != EAGAIN && errno != EINTR)) return End::kClosed;
      if (const End end = wait(POLLIN, deadline); end != End::kDone) return end;
    }
    return End::kDone;
  }
  End wait(int events, Deadline deadline) {
    if (is_raised(cancelled_)) return End::kCancelled;
    if (deadline.passed()) return End::kLate;
    if (events == 0) return End::kDone;
    pollfd polled = {fd_.get(), static_cast<short>(events), 0};
    ::poll(&polled, 1, deadline.poll_timeout_ms(cancelled_ == nullptr ? -1 : kSliceMs));
    return End::kDone;
  }

  PrivateFd fd_;
  Deadline deadline_;
  const std::atomic<bool>* cancelled_;
};

class Client {
 public:
  Client(const IdContent& id, const Hello& hello, Deadline deadline, const std::atomic<bool>* cancelled)
      : id_(id), hello_(hello), deadline_(deadline), cancelled_(cancelled) {}

  Result<Outcome> run() {
    for (std::int64_t pause_ms = 1;; pause_ms = std::min(2 * pause_ms, kMostPauseMs)) {
      if (PrivateFd fd = connect()) {
        std::optional<Result<Outcome>> answer = converse(std::move(fd));
        if (answer) return std::move(*answer);
      }
      if (is_raised(cancelled_)) return aborted();
      if (deadline_.passed()) return unreachable();
      ::poll(nullptr, 0, deadline_.sooner(pause_ms).poll_timeout_ms());
    }
  }

 private:
  /// Notes what was tried, for the words of `unreachable`.
  PrivateFd connect() {
    tried_.clear();
    if (const std::string directory = runtime_directory(); !directory.empty()) {
      const UnixName name = file_name(id_.name);
      if (PrivateFd fd = note(connect_unix(name), directory + "/" + name.name)) return fd;
    }
    if (PrivateFd fd = note(connect_unix(abstract_name(id_.name)), "the abstract Unix socket")) return fd;
    if (id_.family == 0) return {};
    socklen_t bytes = 0;
    const sockaddr_storage address = tcp_address(id_, bytes);
    return note(connect_tcp(address, bytes, deadline_.sooner(kConnectMs), cancelled_),
                address_text(address) + " port " + std::to_string(id_.port));
  }
  PrivateFd note(Connected connected, const std::string& where) {
    if (connected.fd) {
      tried_ = where + ": connected, but no answer";
    } else {
      tried_ += (tried_.empty() ? "" : "; ") + where + ": " + std::strerror(connected.error);
    }
    return std::move(connected.fd);
  }

  /// Nothing: this was no listener of ours, or it had no room for one more connection; try again.
  std::optional<Result<Outcome>> converse(PrivateFd fd) {
    using End = Conversation::End;
    Conversation conversation(std::move(fd), deadline_, cancelled_);
    ReplyHeader header = {};
    std::vector<std::byte> payload;
    seal(hello_, deadline_.limit_ms(), deadline_.is_never() ? 0 : deadline_.remaining_ms());
    End end = conversation.send(hello_);
    if (end == End::kDone) end = conversation.receive(header, payload, deadline_.later(kAnswerMs));
    if (end == End::kDone && header.kind == ReplyHeader::kAccepted) {
      end = conversation.receive(header, payload, deadline_.later(kAnswerMs));
      if (end == End::kClosed) return died();
      if (end == End::kLate) return silent();
    }
    if (end == End::kCancelled) return aborted();
    if (end != End::kDone) return std::nullopt;
    std::optional<Outcome> outcome = decode_outcome(payload);
    if (!outcome)
      return Result<Outcome>(Status(pkcommInternalError, "start-up: an answer that cannot be read"));
    return Result<Outcome>(std::move(*outcome));
  }

  std::string listener() const {
    return "the process that made the id (pid " + std::to_string(id_.creator_pid) + ")";
  }
  std::string rank_text() const {
    return "start-up: rank " + std::to_string(hello_.rank) + " of " + std::to_string(hello_.nranks);
  }
  std::string limit_text() const { return std::to_string(deadline_.limit_ms()) + " ms"; }
  Status aborted() const { return {pkcommAborted, "start-up: the communicator was aborted"}; }
  Status died() const { return {pkcommRemoteError, rank_text() + " lost " + listener() + ": it died"}; }
  Status silent() const {
    return {pkcommTimeout,
            rank_text() + " joined, but heard nothing more from " + listener() + " within " + limit_text()};
  }
  Status unreachable() const {
    return {pkcommTimeout, rank_text() + " found no listener within " + limit_text() + ": " + listener() +
                               ", rank 0's as a rule, is missing, or the id has served already (tried " +
                               tried_ + ")"};
  }

  const IdContent& id_;
  Hello hello_;
  const Deadline deadline_;
  const std::atomic<bool>* const cancelled_;
  std::string tried_;
};

}  // namespace

Result<Outcome> join_elsewhere(const IdContent& id, Hello hello, Deadline deadline,
                               const std::atomic<bool>* cancelled) {
  return Client(id, hello, deadline, cancelled).run();
}

}  // namespace pkcomm::bootstrap
