// Listening and connecting without blocking: Unix stream sockets under abstract names or in PKCOMM_RUNTIME_DIR, and
// TCP. Never resolves a name.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/private_fd.hpp"
#include "bootstrap/wire.hpp"

namespace pkcomm::bootstrap {

/// A listening socket; its file, if it has one, goes with it.
class Listener {
 public:
  Listener() = default;
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener() { close(); }

  /// In PKCOMM_RUNTIME_DIR, as a file with a random name, where that is set; else under an abstract name that the
  /// kernel picks. pkcommInvalidUsage where the directory is none or too long for a socket's address.
  static Result<Listener> unix_any();
  /// The same under a name that follows from `token`, so that whoever knows it finds the listener.
  static Result<Listener> unix_named(std::uint64_t token);
  /// On any free port of `address`, which then holds it.
  static Result<Listener> tcp(sockaddr_storage& address, socklen_t address_bytes);

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  const UnixName& unix_name() const { return name_; }
  /// The next connection, or an empty descriptor with errno (EAGAIN: none).
  PrivateFd accept() const;
  void close();

 private:
  static Result<Listener> unix_file(const std::string& directory, const std::string& name);

  PrivateFd fd_;
  UnixName name_;
  std::string path_;              ///< to unlink; empty: none
  std::uint64_t generation_ = 0;  ///< a forked child leaves the file alone
};

/// The names under which the listener of `token` may be found.
UnixName abstract_name(std::uint64_t token);
UnixName file_name(std::uint64_t token);

/// PKCOMM_RUNTIME_DIR, or empty.
std::string runtime_directory();
/// Removes socket files of pkcomm in `directory` that nobody listens on any more: a killed process cannot.
void remove_stale_files(const std::string& directory);

/// A connected socket, or the errno that explains why there is none.
struct Connected {
  PrivateFd fd;
  int error = 0;
};
Connected connect_unix(const UnixName& name);
/// Waits until `deadline` at most; `cancelled` (may be null) ends the wait as well.
Connected connect_tcp(const sockaddr_storage& address, socklen_t address_bytes, Deadline deadline,
                      const std::atomic<bool>* cancelled);

/// How many accepted connections may wait to prove themselves: strays must not use up the program's descriptors.
std::size_t most_silent_connections();

/// Whether an abort has been asked for; null: it cannot be.
inline bool is_raised(const std::atomic<bool>* cancelled) {
  return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
}

}  // namespace pkcomm::bootstrap
