// What a communicator asks of its platform: to put work on a stream. One backend a rank; each platform has its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/platform_kind.hpp"
#include "base/status.hpp"
#include "collectives/algorithm.hpp"
#include "collectives/one_sided.hpp"
#include "collectives/operation.hpp"
#include "collectives/pairwise.hpp"
#include "protocol/layout.hpp"

namespace pkcomm {

class Backend;

/// A collective with its plan.
struct CollectiveWork {
  Operation op;
  Algorithm algorithm;
  int ctas;
};
/// Sends and receives that belong together; `numbered`: they are the parts of an all_to_all_v, described by `op`.
struct TransferWork {
  std::vector<Transfer> transfers;
  Operation op;
  bool numbered;
};

struct Launch {
  Backend* backend;
  pkcommStream_t stream;
  std::variant<CollectiveWork, TransferWork, PutWork, SignalWork, WaitSignalWork> work;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual int rank() const = 0;

  /// Whether `stream` can take work; before anything is launched.
  virtual Status check(pkcommStream_t stream) = 0;
  /// Puts the work on its stream behind this rank's earlier work, on whatever streams that was.
  virtual Status launch(Launch launch) = 0;
  /// The same for a group, whose ranks may share a stream and must not wait for each other there.
  virtual Status launch_group(std::vector<Launch> group) = 0;
  /// Waits until all work has run.
  virtual void finish() = 0;

  /// Fills in what the caller's own kernels need for their waits.
  virtual Status complete(pkcommDeviceView_t& view) const = 0;

  /// From any thread. `rank` died: running and future work ends.
  virtual void rank_died(int rank) = 0;
  virtual void abort() = 0;
  /// Tells the peers that this rank takes part no more, and waits until none of its work runs.
  virtual void leave() = 0;
  /// The first failure of its work, as far as that is known at no cost: asked at every call.
  virtual Status failure() const = 0;
  /// The same, looking for what peers have told meanwhile.
  virtual Status look() = 0;
};

struct BackendOptions {
  View view;
  int device;
  std::int64_t timeout_ms;
  std::int64_t spin_us;
  std::optional<std::uint64_t> host_seed;
  std::vector<std::int64_t> pids;
  std::shared_ptr<void> keeps;  // what the view rests on; work that is still queued keeps it
};

/// The backend of one rank on `platform`. Everything that its work needs is made here, nothing later.
Result<std::shared_ptr<Backend>> make_backend(PlatformKind platform, BackendOptions options);
/// The algorithms that a platform's backends run, a bit each.
std::uint32_t algorithms_of(PlatformKind platform) noexcept;

}  // namespace pkcomm
