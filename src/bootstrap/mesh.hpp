// The connections between the processes of one communicator: Unix stream sockets, one for each pair, over which
// messages and descriptors are exchanged all to all. They stay open for the communicator's life, so that end-of-file
// tells that a process died. Used by one thread at a time (Membership::together sees to it); only `departure_of` may
// be called beside it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/private_fd.hpp"
#include "bootstrap/unique_fd.hpp"
#include "bootstrap/wire.hpp"

namespace pkcomm::bootstrap {

/// Why a connection closed, the most telling first: an earlier one is the cause of a later one seen beside it.
enum class Departure : std::uint16_t {
  kDied = 0,     ///< ended without a word, whatever the cause
  kAborted = 1,  ///< left after cancel()
  kLeft = 2,     ///< left, all being well as far as it knew
  kGaveUp = 3,   ///< left after an exchange had failed
};

class Mesh {
 public:
  /// Largest message of one process in one exchange.
  static constexpr std::size_t kMaxMessageBytes = 1 << 20;

  struct Message {
    std::vector<std::byte> bytes;
    UniqueFd fd;  ///< empty where the sender gave none, and for one's own message
  };

  /// `connections[p]` leads to process p and is empty for `process` itself. `cancelled` outlives the mesh.
  Mesh(Table table, int process, std::vector<PrivateFd> connections, const std::atomic<bool>* cancelled);

  int processes() const { return static_cast<int>(table_.processes.size()); }
  int process() const { return process_; }

  /// Every process gives `mine` (up to kMaxMessageBytes) and perhaps a descriptor (-1: none; borrowed), and receives
  /// everybody's in the order of the processes. After an error the streams may be out of step, so that every later
  /// call returns the same error; except where all processes see it alike: a peer's `refuse`, another `what`.
  /// Errors: pkcommTimeout (names the ranks not heard from), pkcommRemoteError (names who left or died),
  /// pkcommAborted, pkcommInvalidUsage (processes disagree about `what`), pkcommSystemError, what a peer refused
  /// with.
  Status exchange(const char* what, std::span<const std::byte> mine, int fd, std::vector<Message>& all,
                  Deadline deadline);

  /// Takes part in the peers' current exchange by an error, which all processes' calls return (that of the lowest
  /// process, if several refuse). For work that fails on this process alone: nobody then waits for it.
  Status refuse(const char* what, const Status& why, Deadline deadline);

  /// What the closed connection of `process` left behind. Any thread.
  Departure departure_of(int process);
  /// Tells the peers that this process goes on purpose (kLeft becomes kGaveUp after an error), as far as that is
  /// possible without waiting, and closes.
  void close(Departure why);
  int descriptor_of(int process) const { return peers_[static_cast<std::size_t>(process)]->socket.get(); }
  /// "rank 2 (pid 4711)" or "ranks 2, 3 (pid 4711)".
  std::string name_of(int process) const { return table_.name_of(process); }

 private:
  struct Peer {
    PrivateFd socket;
    std::mutex mutex;  ///< a frame's header is read, and looked at by the monitor's thread, one at a time
    std::optional<Departure> departure;  ///< from a goodbye
    bool torn = false;                   ///< a frame was sent in part: no other may follow
  };
  class Round;

  Status run(Round& round, Deadline deadline);
  std::optional<Departure> goodbye_of(int process);
  void look_for_the_cause(const Round& round);
  Status transfer(Round& round, Deadline deadline);
  Status late(const Round& round, const std::vector<int>& missing, Deadline deadline) const;

  Table table_;
  int process_;
  const std::atomic<bool>* cancelled_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::uint64_t sequence_ = 0;
  Status broken_;
};

}  // namespace pkcomm::bootstrap
