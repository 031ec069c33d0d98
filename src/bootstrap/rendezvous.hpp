// The meeting point of a communicator's ranks, in the process that made the id: two listeners and a thread that takes
// in the ranks of other processes, drops strays, and tells everybody how it ended. Ranks of this same process join by
// direct call. Ends by itself; see `run`.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/endpoint.hpp"
#include "bootstrap/private_fd.hpp"
#include "bootstrap/roster.hpp"
#include "bootstrap/wire.hpp"

namespace pkcomm::bootstrap {

class Rendezvous : public std::enable_shared_from_this<Rendezvous> {
 public:
  struct Listeners {
    Listener local;  ///< Unix
    Listener tcp;    ///< empty where the machine has no usable address
  };

  /// Starts the thread and enters the rendezvous in this process's list, where `find` sees it until it ends.
  static Status open(const Nonce& nonce, Listeners listeners, std::int64_t unused_ms);
  /// Null: no such id is open here: it has served, or nobody came in time. Whoever gets one calls retire or abandon.
  static std::shared_ptr<Rendezvous> find(const Nonce& nonce);

  explicit Rendezvous(const Nonce& nonce) : nonce_(nonce) {}

  /// A rank of this process joins and waits for the end. Errors: pkcommAborted; else the outcome tells.
  Result<Outcome> join(Hello hello, Deadline deadline, const std::atomic<bool>* cancelled);
  /// After success: waits until the thread has ended, which it does once the table is out. Any number of times.
  void retire();
  /// After a failure: lets the thread go on by itself, to tell those who come late.
  void abandon();

 private:
  /// A connection that has yet to prove itself, or is a rank's.
  struct Connection {
    PrivateFd fd;
    Deadline patience;  ///< for the hello
    std::vector<std::byte> in;
    std::vector<std::byte> out;
    std::size_t sent = 0;
    int rank = -1;      ///< of a good hello
    bool told = false;  ///< the outcome is in `out`
    bool closed = false;
  };

  void run(std::int64_t unused_ms);
  void finish();
  bool over(const Deadline& unused, Deadline& linger);
  void wait(const Deadline& unused, const Deadline& linger);
  void accept_all(const Listener& listener);
  void make_room();
  void read(Connection& connection);
  void greet(Connection& connection);
  void write(Connection& connection);
  void tell_all();
  void drop_stray(Connection& connection, const char* why);

  const Nonce nonce_;
  Listeners listeners_;
  PrivateFd wake_;
  std::list<Connection> connections_;  // the thread's alone
  bool short_of_descriptors_ = false;  // the thread's alone: accept again after a pause
  bool warned_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  Roster roster_;
  bool answered_ = false;  // all who are connected have the outcome

  std::mutex thread_mutex_;
  std::thread thread_;
  bool adopted_ = false;  // somebody will retire or abandon; guarded by the list's mutex
};

}  // namespace pkcomm::bootstrap
