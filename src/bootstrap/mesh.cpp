// A frame is a header and its payload; a descriptor travels with the header's first byte. An exchange sends one frame
// to every peer and reads one from each, all at once and without blocking, so that full socket buffers on all sides
// cannot stop it. Frames carry a number: both ends of a connection count exchanges.
#include "bootstrap/mesh.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace pkcomm::bootstrap {
namespace {

constexpr std::uint32_t kFrameMagic = 0x72666b70;  // "pkfr"
enum class Kind : std::uint16_t { kData = 1, kRefusal = 2, kGoodbye = 3 };

struct FrameHeader {
  std::uint32_t magic = kFrameMagic;
  Kind kind = Kind::kData;
  std::uint16_t has_fd = 0;
  std::uint64_t sequence = 0;
  std::uint32_t bytes = 0;
  std::uint32_t detail = 0;  // refusal: the result code; goodbye: the Departure
  char what[32] = {};
};
static_assert(sizeof(FrameHeader) == 56, "no padding");

// How often a wait looks at `cancelled`: an abort may take this long.
constexpr int kSliceMs = 10;

union FdControl {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

void attach(msghdr& message, FdControl& control, int fd) {
  control = {};
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
}

UniqueFd detach(const msghdr& message) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
  return UniqueFd(fd);
}

Departure departure_in(const FrameHeader& goodbye) {
  return static_cast<Departure>(std::min<std::uint32_t>(goodbye.detail, 3));
}

/// The goodbye among frames that were not read yet, whole ones from the start.
std::optional<Departure> goodbye_in(std::span<const char> unread) {
  FrameHeader header;
  while (unread.size() >= sizeof(header)) {
    std::memcpy(&header, unread.data(), sizeof(header));
    if (header.magic != kFrameMagic) break;
    if (header.kind == Kind::kGoodbye) return departure_in(header);
    const std::size_t frame = sizeof(header) + header.bytes;
    if (frame > unread.size()) break;
    unread = unread.subspan(frame);
  }
  return std::nullopt;
}

}  // namespace

/// One exchange in progress: what goes out, and how far each peer is.
class Mesh::Round {
 public:
  Round(Mesh& mesh, Kind kind, const char* what, std::span<const std::byte> mine, int fd,
        std::uint32_t detail)
      : mesh_(mesh), mine_(mine), fd_(fd), progress_(mesh.peers_.size()) {
    out_.kind = kind;
    out_.has_fd = fd >= 0 ? 1 : 0;
    out_.sequence = mesh.sequence_;
    out_.bytes = static_cast<std::uint32_t>(mine.size());
    out_.detail = detail;
    std::strncpy(out_.what, what, sizeof(out_.what) - 1);
  }

  const char* what() const { return out_.what; }
  Status send_some(int process);
  Status receive_some(int process);
  bool sent(int process) const { return at(process).sent == sizeof(out_) + mine_.size(); }
  bool received(int process) const { return at(process).done; }
  /// Whether what this peer sent is read up to the end of a frame.
  bool between_frames(int process) const { return at(process).done || at(process).header_bytes == 0; }
  Status lost(int process) const;
  Status verdict() const;
  void deliver(std::vector<Message>& all);

 private:
  struct Progress {
    std::size_t sent = 0;
    std::size_t header_bytes = 0;
    std::size_t payload_bytes = 0;
    bool done = false;
    bool closed = false;
    FrameHeader in;
    Message message;
  };
  const Progress& at(int process) const { return progress_[static_cast<std::size_t>(process)]; }
  const FrameHeader& header_of(int process) const {
    return process == mesh_.process_ ? out_ : at(process).in;
  }
  std::string text_of(int process) const {
    const auto* begin = process == mesh_.process_ ? mine_.data() : at(process).message.bytes.data();
    return {reinterpret_cast<const char*>(begin), header_of(process).bytes};
  }
  Status receive_header(int process, bool& more);
  Status judge_header(int process);

  Mesh& mesh_;
  FrameHeader out_;
  std::span<const std::byte> mine_;
  int fd_;
  std::vector<Progress> progress_;
};

Status Mesh::Round::lost(int process) const {
  static constexpr std::array kFates = {"died", "aborted the communicator", "left the communicator",
                                        "gave up after an error"};
  const char* fate = kFates[static_cast<std::size_t>(mesh_.departure_of(process))];
  return {pkcommRemoteError, std::string(what()) + ": " + mesh_.name_of(process) + " " + fate};
}

Status Mesh::Round::send_some(int process) {
  Peer& peer = *mesh_.peers_[static_cast<std::size_t>(process)];
  Progress& progress = progress_[static_cast<std::size_t>(process)];
  while (!sent(process)) {
    std::array<iovec, 2> parts = {};
    std::size_t count = 0;
    if (progress.sent < sizeof(out_)) {
      parts[count++] = {reinterpret_cast<char*>(&out_) + progress.sent, sizeof(out_) - progress.sent};
    }
    const std::size_t skip = progress.sent > sizeof(out_) ? progress.sent - sizeof(out_) : 0;
    if (skip < mine_.size()) {
      parts[count++] = {const_cast<std::byte*>(mine_.data()) + skip, mine_.size() - skip};
    }
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    FdControl control;
    if (fd_ >= 0 && progress.sent == 0) attach(message, control, fd_);
    const ssize_t bytes = ::sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes >= 0) {
      progress.sent += static_cast<std::size_t>(bytes);
      peer.torn = !sent(process);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      progress.closed = true;  // what it sent before is read first: a goodbye may be the last of it
      break;
    } else if (errno != EINTR) {
      return {pkcommSystemError,
              std::string(what()) + ": sending to " + mesh_.name_of(process) + ": " + std::strerror(errno)};
    }
  }
  return {};
}

Status Mesh::Round::receive_header(int process, bool& more) {
  Peer& peer = *mesh_.peers_[static_cast<std::size_t>(process)];
  Progress& progress = progress_[static_cast<std::size_t>(process)];
  iovec part = {reinterpret_cast<char*>(&progress.in) + progress.header_bytes,
                sizeof(FrameHeader) - progress.header_bytes};
  FdControl control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  std::unique_lock lock(peer.mutex);
  const ssize_t bytes = ::recvmsg(peer.socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  more = bytes > 0;
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (bytes <= 0) {
    lock.unlock();
    return lost(process);
  }
  if (UniqueFd fd = detach(message)) progress.message.fd = std::move(fd);
  progress.header_bytes += static_cast<std::size_t>(bytes);
  if (progress.header_bytes < sizeof(FrameHeader)) return {};
  if (progress.in.magic == kFrameMagic && progress.in.kind == Kind::kGoodbye) {
    peer.departure = departure_in(progress.in);
    progress.header_bytes = 0;
    lock.unlock();
    return lost(process);
  }
  return judge_header(process);
}

Status Mesh::Round::judge_header(int process) {
  Progress& progress = progress_[static_cast<std::size_t>(process)];
  FrameHeader& in = progress.in;
  in.what[sizeof(in.what) - 1] = '\0';
  if (in.magic != kFrameMagic || in.sequence != out_.sequence || in.bytes > kMaxMessageBytes) {
    return {pkcommInternalError, std::string(what()) + ": " + mesh_.name_of(process) + " is at exchange " +
                                     std::to_string(in.sequence) + ", this process at " +
                                     std::to_string(out_.sequence)};
  }
  if (in.has_fd != 0 && !progress.message.fd) {
    return {pkcommSystemError, std::string(what()) + ": the descriptor sent by " + mesh_.name_of(process) +
                                   " did not arrive: this process has no free descriptor (ulimit -n)"};
  }
  progress.message.bytes.resize(in.bytes);
  progress.done = in.bytes == 0;
  return {};
}

Status Mesh::Round::receive_some(int process) {
  Peer& peer = *mesh_.peers_[static_cast<std::size_t>(process)];
  Progress& progress = progress_[static_cast<std::size_t>(process)];
  while (!progress.done) {
    if (progress.header_bytes < sizeof(FrameHeader)) {
      bool more = false;
      PK_TRY(receive_header(process, more));
      if (!more) return {};
      continue;
    }
    auto& bytes = progress.message.bytes;
    const ssize_t got = ::recv(peer.socket.get(), bytes.data() + progress.payload_bytes,
                               bytes.size() - progress.payload_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got <= 0) return lost(process);
    progress.payload_bytes += static_cast<std::size_t>(got);
    progress.done = progress.payload_bytes == bytes.size();
  }
  return progress.closed ? lost(process) : Status();
}

/// What all processes conclude alike, since all have the same headers before them.
Status Mesh::Round::verdict() const {
  const int processes = mesh_.processes();
  for (int p = 1; p < processes; ++p) {
    if (std::strcmp(header_of(p).what, header_of(0).what) == 0) continue;
    return {pkcommInvalidUsage, mesh_.name_of(0) + " is in \"" + header_of(0).what + "\", " +
                                    mesh_.name_of(p) + " in \"" + header_of(p).what + "\""};
  }
  for (int p = 0; p < processes; ++p) {
    if (header_of(p).kind != Kind::kRefusal) continue;
    const auto code = static_cast<pkcommResult_t>(header_of(p).detail);
    if (p == mesh_.process_) return {code, text_of(p)};
    return {code, mesh_.name_of(p) + ": " + text_of(p)};
  }
  return {};
}

void Mesh::Round::deliver(std::vector<Message>& all) {
  all.clear();
  for (Progress& progress : progress_) all.push_back(std::move(progress.message));
  all[static_cast<std::size_t>(mesh_.process_)].bytes.assign(mine_.begin(), mine_.end());
}

Mesh::Mesh(Table table, int process, std::vector<PrivateFd> connections, const std::atomic<bool>* cancelled)
    : table_(std::move(table)), process_(process), cancelled_(cancelled) {
  for (PrivateFd& connection : connections) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->socket = std::move(connection);
  }
}

Status Mesh::exchange(const char* what, std::span<const std::byte> mine, int fd, std::vector<Message>& all,
                      Deadline deadline) {
  if (mine.size() > kMaxMessageBytes) {
    return {pkcommInvalidArgument, std::string(what) + ": a message of " + std::to_string(mine.size()) +
                                       " bytes, at most " + std::to_string(kMaxMessageBytes) +
                                       " are allowed"};
  }
  Round round(*this, Kind::kData, what, mine, fd, 0);
  PK_TRY(run(round, deadline));
  PK_TRY(round.verdict());
  round.deliver(all);
  return {};
}

Status Mesh::refuse(const char* what, const Status& why, Deadline deadline) {
  const std::string text = why.message().substr(0, kMaxMessageBytes);
  Round round(*this, Kind::kRefusal, what, std::as_bytes(std::span(text)), -1,
              static_cast<std::uint32_t>(why.code()));
  PK_TRY(run(round, deadline));
  return round.verdict();
}

Status Mesh::run(Round& round, Deadline deadline) {
  if (!broken_.ok()) return broken_;
  broken_ = transfer(round, deadline);
  if (broken_.code() == pkcommRemoteError) look_for_the_cause(round);
  ++sequence_;
  return broken_;
}

/// Who notices a death first gives up and leaves, and its leaving may be seen before the death itself.
void Mesh::look_for_the_cause(const Round& round) {
  int cause = -1;
  for (int p = 0; p < processes(); ++p) {
    if (p == process_ || !round.between_frames(p)) continue;
    pollfd polled = {descriptor_of(p), 0, 0};
    if (!goodbye_of(p) && ::poll(&polled, 1, 0) != 1) continue;
    if (cause < 0 || departure_of(p) < departure_of(cause)) cause = p;
  }
  if (cause >= 0) broken_ = round.lost(cause);
}

Status Mesh::transfer(Round& round, Deadline deadline) {
  std::vector<pollfd> polled;
  std::vector<int> waiting;
  for (int p = 0; p < processes(); ++p) {
    if (p != process_) waiting.push_back(p);
  }
  while (true) {
    polled.clear();
    std::vector<int> still;
    for (const int p : waiting) {
      PK_TRY(round.send_some(p));
      PK_TRY(round.receive_some(p));
      if (round.sent(p) && round.received(p)) continue;
      still.push_back(p);
      const int events = (round.sent(p) ? 0 : POLLOUT) | (round.received(p) ? 0 : POLLIN);
      polled.push_back({descriptor_of(p), static_cast<short>(events), 0});
    }
    waiting = std::move(still);
    if (waiting.empty()) return {};
    if (cancelled_->load(std::memory_order_relaxed)) {
      return {pkcommAborted, std::string(round.what()) + ": the communicator was aborted"};
    }
    if (deadline.passed()) return late(round, waiting, deadline);
    ::poll(polled.data(), polled.size(), deadline.poll_timeout_ms(kSliceMs));
  }
}

Status Mesh::late(const Round& round, const std::vector<int>& missing, Deadline deadline) const {
  std::string names;
  for (const int p : missing) names += (names.empty() ? "" : ", ") + name_of(p);
  return {pkcommTimeout, std::string(round.what()) + ": " + names + " did not take part within " +
                             std::to_string(deadline.limit_ms()) + " ms"};
}

std::optional<Departure> Mesh::goodbye_of(int process) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const std::lock_guard lock(peer.mutex);
  if (!peer.departure) {
    // A goodbye is short and follows at most a few small frames that this process has not read.
    std::array<char, 4096> unread;
    const ssize_t bytes = ::recv(peer.socket.get(), unread.data(), unread.size(), MSG_PEEK | MSG_DONTWAIT);
    peer.departure = goodbye_in(std::span(unread).first(bytes > 0 ? static_cast<std::size_t>(bytes) : 0));
  }
  return peer.departure;
}

Departure Mesh::departure_of(int process) { return goodbye_of(process).value_or(Departure::kDied); }

void Mesh::close(Departure why) {
  if (why == Departure::kLeft && !broken_.ok()) why = Departure::kGaveUp;
  FrameHeader goodbye;
  goodbye.kind = Kind::kGoodbye;
  goodbye.sequence = sequence_;
  goodbye.detail = static_cast<std::uint32_t>(why);
  // All are told before any connection closes, so that nobody sees a peer's reaction before the cause.
  for (const std::unique_ptr<Peer>& peer : peers_) {
    // Best effort: in a full buffer, or behind half a frame, it would not be understood.
    if (!peer->socket || peer->torn) continue;
    (void)::send(peer->socket.get(), &goodbye, sizeof(goodbye), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  for (const std::unique_ptr<Peer>& peer : peers_) peer->socket.reset();
}

}  // namespace pkcomm::bootstrap
