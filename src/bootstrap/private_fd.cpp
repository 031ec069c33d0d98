// The list of descriptors that a child closes, and the fork handlers that do it. They are registered when the library
// is loaded, since handlers registered by one thread while another forks would come too late.
#include "bootstrap/private_fd.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "base/process.hpp"

namespace pkcomm::bootstrap {
namespace {

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
  pthread_mutex_unlock(&fork_mutex);
  errno = errno_before;
}

[[maybe_unused]] const int kForkHandlers = pthread_atfork(before_fork, parent_after_fork, child_after_fork);

}  // namespace

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
