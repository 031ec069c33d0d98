// Sockets are made close-on-exec, non-blocking and private to this process in one step each. An abstract address
// belongs to a network namespace and vanishes with its socket; a file belongs to whoever sees the directory and has
// to be removed.
#include "bootstrap/endpoint.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/environment.hpp"
#include "base/process.hpp"
#include "bootstrap/nonce.hpp"

namespace pkcomm::bootstrap {
namespace {

// Every other process may connect at the same moment, strays besides; the kernel's own limit is net.core.somaxconn.
constexpr int kBacklog = 4096;
constexpr int kSliceMs = 10;
constexpr std::string_view kFilePrefix = "pkcomm-";
constexpr std::string_view kFileSuffix = ".sock";
constexpr std::string_view kUnfinishedSuffix = ".new";

struct UnixAddress {
  sockaddr_un address = {};
  socklen_t bytes = 0;
};

Status system_error(const std::string& what) {
  return {pkcommSystemError, what + ": " + std::strerror(errno)};
}

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(number));
  return text;
}

PrivateFd make_socket(int family) {
  return PrivateFd::create(
      [family] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

/// An abstract address begins with a zero byte and has the length of its name; an empty name lets the kernel pick
/// one.
UnixAddress abstract_address(const std::string& name) {
  UnixAddress result;
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.bytes =
      static_cast<socklen_t>(name.empty() ? sizeof(sa_family_t) : sizeof(sa_family_t) + 1 + name.size());
  return result;
}

Result<UnixAddress> file_address(const std::string& path) {
  UnixAddress result;
  result.address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(result.address.sun_path)) {
    return Status(pkcommInvalidUsage, "PKCOMM_RUNTIME_DIR is too long: a socket's path has " +
                                          std::to_string(path.size()) + " bytes (" + path + "), at most " +
                                          std::to_string(sizeof(result.address.sun_path) - 1) +
                                          " are allowed");
  }
  std::memcpy(result.address.sun_path, path.data(), path.size());
  result.bytes = sizeof(sockaddr_un);
  return result;
}

int bind_to(int fd, const UnixAddress& unix_address) {
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&unix_address.address), unix_address.bytes);
}

int connect_to(int fd, const UnixAddress& unix_address) {
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&unix_address.address), unix_address.bytes);
}

/// Shared: held by everybody whose socket file does not listen yet. Exclusive: nobody's is. The kernel unlocks when a
/// process is killed, and a forked child does not keep it.
PrivateFd lock_directory(const std::string& directory, int how) {
  PrivateFd lock =
      PrivateFd::create([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (lock && ::flock(lock.get(), how) != 0) lock.reset();
  return lock;
}

}  // namespace

UnixName abstract_name(std::uint64_t token) { return {false, "pkcomm-" + hexadecimal(token)}; }
UnixName file_name(std::uint64_t token) {
  return {true, std::string(kFilePrefix) + hexadecimal(token) + std::string(kFileSuffix)};
}

std::string runtime_directory() {
  return environment::get_if_set<environment::Var::kRuntimeDir>().value_or(std::string());
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::move(other.fd_)),
      name_(std::move(other.name_)),
      path_(std::exchange(other.path_, {})),
      generation_(other.generation_) {}

Listener& Listener::operator=(Listener&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::move(other.fd_);
    name_ = std::move(other.name_);
    path_ = std::exchange(other.path_, {});
    generation_ = other.generation_;
  }
  return *this;
}

void Listener::close() {
  fd_.reset();
  if (!path_.empty() && generation_ == process_generation()) ::unlink(path_.c_str());
  path_.clear();
}

Result<Listener> Listener::unix_any() {
  if (const std::string directory = runtime_directory(); !directory.empty()) {
    return unix_file(directory, file_name(random_nonce().words[0]).name);
  }
  Listener listener;
  listener.fd_ = make_socket(AF_UNIX);
  if (!listener.fd_) return system_error("socket(AF_UNIX)");
  if (bind_to(listener.get(), abstract_address("")) != 0) return system_error("bind to an abstract address");
  UnixAddress bound;
  bound.bytes = sizeof(bound.address);
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound.address), &bound.bytes) != 0) {
    return system_error("getsockname");
  }
  if (::listen(listener.get(), kBacklog) != 0) return system_error("listen");
  listener.name_.name.assign(bound.address.sun_path + 1, bound.bytes - sizeof(sa_family_t) - 1);
  return listener;
}

Result<Listener> Listener::unix_named(std::uint64_t token) {
  if (const std::string directory = runtime_directory(); !directory.empty()) {
    remove_stale_files(directory);
    return unix_file(directory, file_name(token).name);
  }
  Listener listener;
  listener.fd_ = make_socket(AF_UNIX);
  if (!listener.fd_) return system_error("socket(AF_UNIX)");
  listener.name_ = abstract_name(token);
  if (bind_to(listener.get(), abstract_address(listener.name_.name)) != 0 ||
      ::listen(listener.get(), kBacklog) != 0) {
    return system_error("listen at an abstract address");
  }
  return listener;
}

Result<Listener> Listener::unix_file(const std::string& directory, const std::string& name) {
  const PrivateFd lock = lock_directory(directory, LOCK_SH);
  Listener listener;
  listener.name_ = {true, name};
  // Listens before it has its final name: a file that refuses connections is then a dead one, see remove_stale_files.
  const std::string path = directory + "/" + name;
  const std::string path_before =
      path.substr(0, path.size() - kFileSuffix.size()) + std::string(kUnfinishedSuffix);
  PK_TRY(file_address(path).status());
  PK_ASSIGN(const UnixAddress before, file_address(path_before));
  listener.fd_ = make_socket(AF_UNIX);
  if (!listener.fd_) return system_error("socket(AF_UNIX)");
  if (bind_to(listener.get(), before) != 0) {
    return Status(pkcommInvalidUsage, "PKCOMM_RUNTIME_DIR=\"" + directory +
                                          "\": cannot make a socket there: " + std::strerror(errno));
  }
  listener.generation_ = process_generation();
  listener.path_ = path_before;
  if (::listen(listener.get(), kBacklog) != 0) return system_error("listen at " + path_before);
  if (::rename(path_before.c_str(), path.c_str()) != 0) return system_error("rename to " + path);
  listener.path_ = path;
  return listener;
}

Result<Listener> Listener::tcp(sockaddr_storage& address, socklen_t address_bytes) {
  Listener listener;
  listener.fd_ = make_socket(address.ss_family);
  auto* bound = reinterpret_cast<sockaddr*>(&address);
  if (!listener.fd_ || ::bind(listener.get(), bound, address_bytes) != 0 ||
      ::listen(listener.get(), kBacklog) != 0 || ::getsockname(listener.get(), bound, &address_bytes) != 0) {
    return system_error("listen by TCP");
  }
  return listener;
}

PrivateFd Listener::accept() const {
  return PrivateFd::create(
      [this] { return ::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
}

std::size_t most_silent_connections() {
  // Ranks speak at once, so few are silent at any time; one that is dropped for want of room tries again.
  constexpr rlim_t kMost = 128;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / 4, 1, kMost));
}

void remove_stale_files(const std::string& directory) {
  DIR* list = ::opendir(directory.c_str());
  if (list == nullptr) return;
  // Nobody is on the way from bind to listen while this is held: an unfinished file that refuses is a dead one too.
  // Where somebody is, unfinished files are left for the next start.
  const PrivateFd alone = lock_directory(directory, LOCK_EX | LOCK_NB);
  while (const dirent* entry = ::readdir(list)) {
    const std::string_view name = entry->d_name;
    const bool finished = name.ends_with(kFileSuffix);
    if (!name.starts_with(kFilePrefix) || name.size() > kMaxNameBytes) continue;
    if (!finished && !(alone && name.ends_with(kUnfinishedSuffix))) continue;
    if (connect_unix({true, std::string(name)}).error != ECONNREFUSED) continue;
    ::unlink((directory + "/" + std::string(name)).c_str());
  }
  ::closedir(list);
}

Connected connect_unix(const UnixName& name) {
  Result<UnixAddress> address =
      name.is_file ? file_address(runtime_directory() + "/" + name.name) : abstract_address(name.name);
  if (!address.ok()) return {PrivateFd(), ENAMETOOLONG};
  PrivateFd fd = make_socket(AF_UNIX);
  if (!fd || connect_to(fd.get(), address.value()) != 0) return {PrivateFd(), errno};
  return {std::move(fd), 0};
}

Connected connect_tcp(const sockaddr_storage& address, socklen_t address_bytes, Deadline deadline,
                      const std::atomic<bool>* cancelled) {
  PrivateFd fd = make_socket(address.ss_family);
  if (!fd) return {PrivateFd(), errno};
  const int one = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), address_bytes) == 0)
    return {std::move(fd), 0};
  if (errno != EINPROGRESS) return {PrivateFd(), errno};
  while (true) {
    pollfd polled = {fd.get(), POLLOUT, 0};
    if (::poll(&polled, 1, deadline.poll_timeout_ms(kSliceMs)) > 0) break;
    if (deadline.passed() || is_raised(cancelled)) return {PrivateFd(), ETIMEDOUT};
  }
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error != 0) return {PrivateFd(), error};
  return {std::move(fd), 0};
}

}  // namespace pkcomm::bootstrap
