// One rank's membership of a communicator: ties together who is there (membership), memory (heap), choice (dispatcher) and
// execution (backend). Calls come validated for null handles only. One caller at a time, but for the functions that say
// otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/status.hpp"
#include "collectives/backend.hpp"
#include "comm/local_group.hpp"
#include "comm/settings.hpp"
#include "dispatch/dispatcher.hpp"
#include "memory/heap.hpp"
#include "pkcomm/pkcomm.h"
#include "platform/platform.hpp"

struct pkcommWindow {
  std::uint64_t offset, bytes;
};

namespace pkcomm {

/// A collective as the caller wrote it.
struct Call {
  Collective collective;
  const void* send;
  void* recv;
  std::size_t count;
  pkcommDataType_t dtype;
  pkcommRedOp_t op;
  int root;
  pkcommStream_t stream;
};
/// The arrays of an all_to_all_v.
struct PairCounts {
  const std::size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
};

class Communicator {
 public:
  Communicator(int nranks, const pkcommUniqueId& id, int rank, Settings settings);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Joins. Collective; waits for all ranks.
  Status start();
  /// The same on a thread of its own; state() tells when it is done.
  Status start_in_background();

  int rank() const { return rank_; }
  int nranks() const { return nranks_; }
  int device() const { return settings_.device.value_or(rank_); }
  const Settings& settings() const { return settings_; }
  void fill(pkcommCommProperties_t& properties) const;

  // From any thread.
  /// Success, pkcommInProgress, or the first failure.
  Status state() const;
  void abort();
  void remember_error(const Status& status);
  std::string last_error() const;

  // Work. Within a group it is collected, otherwise launched.
  Status collective(const Call& call);
  Status all_to_all_v(const Call& call, const PairCounts& counts);
  Status transfer(bool sends, void* buffer, std::size_t count, pkcommDataType_t dtype, int peer,
                  pkcommStream_t stream);
  Status put(const void* from, void* to, std::size_t bytes, int peer, pkcommStream_t stream);
  Status signal(int peer, int index, pkcommStream_t stream);
  Status wait_signal(int peer, int index, std::uint64_t arrivals, pkcommStream_t stream);
  Result<pkcommRedOp_t> create_premul_sum(const void* scalar, pkcommDataType_t dtype,
                                          pkcommScalarResidence_t residence);
  Status destroy_op(pkcommRedOp_t op);

  // Symmetric memory.
  Result<void*> heap_alloc(std::size_t bytes);
  Status heap_free(void* ptr);
  Result<void*> peer_pointer(const void* ptr, int peer) const;
  Status multicast_pointer(const void* ptr) const;
  Result<pkcommDeviceView_t> device_view() const;
  Result<pkcommWindow*> register_window(void* ptr, std::size_t bytes);
  Status deregister_window(pkcommWindow* window);

  Result<dispatch::Explanation> explain(const pkcommExplainRequest_t& request) const;
  /// The id and the place of this rank in the communicator of those with its colour; no id for NOCOLOR.
  struct Part {
    pkcommUniqueId id;
    int rank, nranks;
  };
  Result<std::optional<Part>> split(int color, int key);

  Status finalize();

 private:
  enum class State { kStarting, kReady, kFailed, kFinalized };
  struct PreMulSum {
    pkcommDataType_t dtype;
    std::uint64_t scalar;
    const void* device_scalar;
  };

  Status join();
  Status bind_dispatcher(PlatformKind platform, const DeviceFacts& facts);
  Status map_memory(Platform& platform, const DeviceFacts& facts, bootstrap::Deadline deadline);
  Status prove_memory(Platform& platform, bootstrap::Deadline deadline);
  View view() const;
  Status ready() const;
  Status require_rank(const char* argument, int value) const;
  Status check_overlap(const Call& call, std::uint64_t send_bytes, std::uint64_t recv_bytes,
                       std::uint64_t block) const;
  dispatch::Request request_for(Collective collective, std::size_t count, pkcommDataType_t dtype,
                                pkcommRedOp_t op) const;
  Status submit(Launch launch);
  Result<std::uint64_t> require_heap(const void* ptr, std::size_t bytes, const char* argument) const;

  const int nranks_;
  const pkcommUniqueId id_;
  const int rank_;
  const Settings settings_;

  std::atomic<State> state_{State::kStarting};
  std::atomic<bool> cancelled_{false};
  mutable std::mutex
      mutex_;  // of start_status_, last_error_ and the life of membership_ and backend_ while starting
  Status start_status_;
  std::string last_error_;
  std::thread starter_;

  std::shared_ptr<bootstrap::Membership> membership_;
  std::shared_ptr<LocalGroup> group_;
  PlatformKind platform_ = PlatformKind::kHost;
  Layout layout_{};
  std::optional<dispatch::Dispatcher> dispatcher_;
  std::unique_ptr<Heap> heap_;
  std::shared_ptr<Backend> backend_;
  std::map<pkcommRedOp_t, PreMulSum> ops_;
  int next_op_ = PKCOMM_BUILTIN_OPS;
  std::set<std::unique_ptr<pkcommWindow>> windows_;
};

}  // namespace pkcomm
