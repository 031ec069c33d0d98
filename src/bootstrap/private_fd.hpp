// Owns a descriptor that must stay this process's own: a connection or a listener. A forked child closes its copies
// at once, since a peer sees end-of-file only when the last copy is gone, and the child's end must not shut down
// what the parent uses. All are close-on-exec besides.
#pragma once

#include <cstdint>
#include <utility>

namespace pkcomm::bootstrap {

class PrivateFd {
 public:
  PrivateFd() noexcept = default;
  PrivateFd(PrivateFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  PrivateFd& operator=(PrivateFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      generation_ = other.generation_;
    }
    return *this;
  }
  ~PrivateFd() { reset(); }

  /// Runs `make`, a non-blocking call that gives a descriptor or -1 with errno, such that no fork falls between the
  /// descriptor and its registration. errno is `make`'s.
  template <typename Make>
  static PrivateFd create(Make make) {
    lock_against_fork();
    const int fd = make();
    return adopt_and_unlock(fd);
  }

  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  /// Closes. In a forked child the number is no longer ours and is only forgotten.
  void reset() noexcept;

 private:
  static void lock_against_fork();
  static PrivateFd adopt_and_unlock(int fd);

  int fd_ = -1;
  std::uint64_t generation_ = 0;
};

}  // namespace pkcomm::bootstrap
