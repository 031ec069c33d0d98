// A library under test: pkcomm, or NCCL beside it. Each does the same calls on the same device and stream,
// with buffers of its own, so that a measurement need not know whose it is.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectives.hpp"
#include "device.hpp"
#include "options.hpp"
#include "result.hpp"
#include "team.hpp"

namespace pkcomm::perf {

/// One rank's membership of a library's communicator. Functions that say so are called by all ranks.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// What calls give as their communicator; NULL where it is not pkcomm's.
  virtual pkcommComm_t comm() const = 0;

  /// Whether it has this collective, and with this operation; what it refuses by type or size shows when it
  /// is called.
  virtual bool has(const Collective& collective) const = 0;
  virtual bool can(const Collective& collective, Op op) const = 0;
  /// Whether its result is bit for bit the one that the data check expects.
  virtual bool is_exact(const Collective& collective, pkcommDataType_t type, Op op) const = 0;

  /// Collective where the memory is symmetric.
  virtual Result<void*> allocate(Memory memory, std::size_t bytes) = 0;
  virtual void release(Memory memory, void* base, std::size_t bytes) = 0;

  /// The operation's value for calls; `scalar` is this rank's for a pre-multiplied sum, which is undone by
  /// drop_op.
  virtual Result<pkcommRedOp_t> make_op(Op op, pkcommDataType_t type, const void* scalar) = 0;
  virtual Outcome drop_op(Op op, pkcommRedOp_t value) = 0;

  /// Enqueues one call, or `repeats` of them as one group. `*unsupported` receives why the library has no
  /// way to do it; then nothing was enqueued, on all ranks alike, and the outcome is success.
  virtual Outcome run(const Collective& collective, const Call& call, int repeats,
                      std::string* unsupported) = 0;
  /// Enqueues what brings the ranks together.
  virtual Outcome align() = 0;
  /// What went wrong on the stream, if anything.
  virtual Outcome health() = 0;
};

/// pkcomm's, as far as the tool asks it for more than Backend offers.
class PkcommBackend : public Backend {
 public:
  /// As they are now.
  virtual Result<pkcommCommProperties_t> properties() const = 0;
  /// Waits for this rank's work and ends its calls.
  virtual Outcome finalize() = 0;
};

/// Collective over the team: rank 0 makes the id. `device` and `team` outlive the backend.
Result<std::unique_ptr<PkcommBackend>> open_pkcomm(const Options& options, Team& team, Device& device);

}  // namespace pkcomm::perf
