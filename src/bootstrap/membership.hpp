// What the ranks of one communicator that live in one process share: who is where, the connections to the other
// processes, and the meeting in which local ranks act as one. Ranks are threads or are driven by one; a rank takes
// part in one meeting at a time, and all ranks in the same order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "base/status.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/mesh.hpp"
#include "bootstrap/monitor.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm::bootstrap {

struct RankInfo {
  int process;       ///< index among the communicator's processes
  std::int64_t pid;  ///< as that process sees itself
};

/// Puts the difference of two agreement blobs into words, such as "PKCOMM_STAGING is 1 MiB and 64 MiB". Pure.
using Describe = std::function<std::string(std::span<const std::byte> one, std::span<const std::byte> other)>;

class Membership {
 public:
  /// Every rank of the communicator calls it, with nranks 1 to kMaxRanks. `agreement`, at most kMaxAgreementBytes,
  /// must be equal on all ranks; if it is not, all ranks get pkcommInvalidUsage naming two that differ, with the
  /// words of `describe` (may be empty). `cancelled` may be null; raising it ends a join within some 10 ms.
  /// Errors: pkcommInvalidArgument (id, nranks, rank, size of the agreement), pkcommInvalidUsage (ranks disagree,
  /// one rank twice, the id has served), pkcommTimeout (the text lists who is missing), pkcommRemoteError (a rank
  /// left or died meanwhile), pkcommAborted, pkcommSystemError.
  static Result<std::shared_ptr<Membership>> join(const pkcommUniqueId& id, int nranks, int rank,
                                                  std::span<const std::byte> agreement,
                                                  const Describe& describe, Deadline deadline,
                                                  const std::atomic<bool>* cancelled);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  int nranks() const { return static_cast<int>(ranks_.size()); }
  int processes() const { return static_cast<int>(table_.processes.size()); }
  /// This process's index: processes are numbered by their lowest rank.
  int process() const { return process_; }
  const std::vector<RankInfo>& ranks() const { return ranks_; }
  const std::vector<int>& local_ranks() const { return local_ranks_; }
  /// The communicator's 128 random bits, equal on all its ranks; `word` is 0 or 1.
  std::uint64_t nonce(int word) const { return nonce_.words[static_cast<std::size_t>(word)]; }
  /// "rank 2 (pid 4711)", "ranks 2-5 (pid 4711)": a process in the words of messages.
  std::string name_of(int process) const { return table_.name_of(process); }

  /// All local ranks meet; the last to arrive runs its own `work`, once, with the mesh to the other processes; all
  /// get its Status. Every process of the communicator does the same. `what` ("allocation", "split"; up to 31
  /// characters) is shown in errors, and ranks that come for different things get pkcommInvalidUsage, in all
  /// processes. After a meeting that ended by its deadline, a lost process or `cancel`, all later ones fail with the
  /// same error.
  Status together(int rank, const char* what, Deadline deadline, const std::function<Status(Mesh&)>& work);

  /// Every rank gives `mine` and receives nranks() times as many bytes in `all`, in the order of the ranks. Ranks
  /// that give different sizes all get pkcommInvalidUsage. At most Mesh::kMaxMessageBytes for the ranks of one
  /// process.
  Status all_gather(int rank, const char* what, std::span<const std::byte> mine, std::span<std::byte> all,
                    Deadline deadline);

  /// `lost` is called from the monitor's thread, once for each process whose connection closes (also before this
  /// call), with how it went. Called at most once, by one of the local ranks. It must not call leave().
  Status watch(std::function<void(int process, Departure how)> lost);

  /// `rank` takes part in nothing more; not while it is inside a call; a second time does nothing. The last local
  /// rank's closes the connections, after which `lost` neither runs nor will. Waits for a running `lost`, never for
  /// peers: so hold no lock that `lost` takes. Peers see kLeft, kAborted after cancel(), kGaveUp after a failed
  /// exchange.
  void leave(int rank);

  /// Local waiters in together and all_gather return pkcommAborted at once (inside an exchange within some 10 ms), as
  /// do all later calls. Any thread, any number of times; not from a signal handler.
  void cancel();

 private:
  struct Meeting;
  using Work = std::function<Status(Meeting& meeting)>;

  Membership(Table table, int process, const Nonce& nonce);
  /// Runs `connect` in the first meeting.
  Status start(int rank, Deadline deadline, const std::atomic<bool>* cancelled, const Work& connect);
  Status meet(int rank, const char* what, Deadline deadline, std::span<const std::byte> mine,
              const Work& work, const std::atomic<bool>* cancelled, std::shared_ptr<Meeting>& meeting);
  Status run(Meeting& meeting, Deadline deadline, const Work& work);
  Status wait(std::unique_lock<std::mutex>& lock, Meeting& meeting, Deadline deadline,
              const std::atomic<bool>* cancelled);
  void fail(Status status);
  Status gather(Meeting& meeting, Deadline deadline);
  Status spread(const std::vector<Mesh::Message>& messages, Meeting& meeting) const;

  const Table table_;
  const int process_;
  const Nonce nonce_;
  const std::uint64_t generation_ = process_generation();
  std::vector<RankInfo> ranks_;
  std::vector<int> local_ranks_;

  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Meeting> current_;  // that ranks arrive at; null: none
  Status broken_;                     // what every later meeting returns
  std::set<int> left_;                // local ranks
  std::unique_ptr<Mesh> mesh_;  // made in the first meeting, then used by the one rank that runs a meeting
  std::shared_ptr<Watch> watch_;
};

}  // namespace pkcomm::bootstrap
