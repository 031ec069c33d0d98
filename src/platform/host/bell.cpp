// The futex behind the bell; shared between processes, hence not the private kind.
#include "platform/host/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace pkcomm::host {

bool sleep_on_bell(ControlBlock* control, std::uint32_t seen, std::int64_t timeout_us) noexcept {
  const int saved = errno;
  timespec limit{};
  limit.tv_sec = timeout_us / 1000000;
  limit.tv_nsec = timeout_us % 1000000 * 1000;
  const bool timed_out =
      syscall(SYS_futex, &control->bell, FUTEX_WAIT, seen, &limit, nullptr, 0) != 0 && errno == ETIMEDOUT;
  errno = saved;
  return !timed_out;
}

void ring_bell(ControlBlock* control) noexcept {
  const int saved = errno;
  fetch_add(&control->bell, std::uint32_t{1});
  syscall(SYS_futex, &control->bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace pkcomm::host
