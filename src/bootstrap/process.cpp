// The fork handlers live here, beside the list of descriptors that a child closes. They are registered when the
// library is loaded, since a handler registered by one thread while another forks would come too late.
#include "bootstrap/process.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "bootstrap/private_fd.hpp"
#include "bootstrap/unique_fd.hpp"

namespace pkcomm::bootstrap {
namespace {

std::atomic<std::uint64_t> generation{1};

// A leaf lock: nothing else is locked or allocated while it is held (an allocator has fork handlers too). fork()
// takes it, so a child finds the list whole and the lock in its own hands.
pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;

// One bit a descriptor number, up to Linux's usual hard limit (fs.nr_open, 1,048,576); a child keeps what lies
// beyond.
class FdSet {
 public:
  void set(int fd, bool present) {
    if (fd >= kLimit) return;
    std::uint64_t& word = words_[fd / 64];
    const std::uint64_t bit = std::uint64_t{1} << (fd % 64);
    word = present ? word | bit : word & ~bit;
    if (present && fd >= end_) end_ = fd + 1;
  }
  void close_all() {
    for (int fd = 0; fd < end_; ++fd) {
      if ((words_[fd / 64] >> (fd % 64) & 1) != 0) ::close(fd);
      if (fd % 64 == 63 || fd == end_ - 1) words_[fd / 64] = 0;
    }
    end_ = 0;
  }

 private:
  static constexpr int kLimit = 1 << 20;
  std::uint64_t words_[kLimit / 64] = {};
  int end_ = 0;
};
FdSet private_fds;

void before_fork() { pthread_mutex_lock(&fork_mutex); }
void parent_after_fork() { pthread_mutex_unlock(&fork_mutex); }
void child_after_fork() {
  const int errno_before = errno;
  private_fds.close_all();
  // Relaxed: a child has one thread.
  generation.fetch_add(1, std::memory_order_relaxed);
  pthread_mutex_unlock(&fork_mutex);
  errno = errno_before;
}

[[maybe_unused]] const int kForkHandlers = pthread_atfork(before_fork, parent_after_fork, child_after_fork);

struct Identity {
  Nonce nonce = random_nonce();
};
PerProcess<Identity> identity;

}  // namespace

std::uint64_t process_generation() noexcept { return generation.load(std::memory_order_relaxed); }

Nonce process_nonce() { return identity.get().nonce; }

Nonce random_nonce() {
  Nonce nonce;
  auto* bytes = reinterpret_cast<char*>(nonce.words.data());
  for (std::size_t got = 0; got < sizeof(nonce.words);) {
    const ssize_t more = getrandom(bytes + got, sizeof(nonce.words) - got, 0);
    if (more > 0) got += static_cast<std::size_t>(more);
  }
  return nonce;
}

std::uint64_t checksum(const void* data, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: offset basis and prime of its 64-bit form
  for (std::size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
  }
  return hash;
}

std::uint64_t place_of_process() {
  struct {
    char boot[36] = {};
    std::uint64_t network = 0;
  } place;
  const UniqueFd boot_id(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  struct stat network = {};
  if (!boot_id || ::read(boot_id.get(), place.boot, sizeof(place.boot)) != sizeof(place.boot)) return 0;
  if (::stat("/proc/self/ns/net", &network) != 0) return 0;
  place.network = network.st_ino;
  static_assert(sizeof(place) == 48);
  const char* begin = reinterpret_cast<const char*>(&place);
  // The padding between the two is left out.
  return checksum(begin, sizeof(place.boot)) ^ checksum(&place.network, sizeof(place.network));
}

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread begins with its maker's mask
  Result<std::thread> result = Status(pkcommInternalError, "");
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    result = std::move(thread);
  } catch (const std::system_error& error) {
    result = Status(pkcommSystemError, std::string("cannot start thread ") + name + ": " + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

void PrivateFd::lock_against_fork() { pthread_mutex_lock(&fork_mutex); }

PrivateFd PrivateFd::adopt_and_unlock(int fd) {
  const int errno_of_make = errno;
  PrivateFd owner;
  if (fd >= 0) {
    private_fds.set(fd, true);
    owner.fd_ = fd;
    owner.generation_ = process_generation();
  }
  pthread_mutex_unlock(&fork_mutex);
  errno = errno_of_make;
  return owner;
}

void PrivateFd::reset() noexcept {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0 || generation_ != process_generation()) return;
  pthread_mutex_lock(&fork_mutex);
  private_fds.set(fd, false);
  ::close(fd);
  pthread_mutex_unlock(&fork_mutex);
}

}  // namespace pkcomm::bootstrap
