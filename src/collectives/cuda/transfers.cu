// The kernels of work between two ranks: sends and receives, puts, signals.
//
//   pkcomm_pairwise_few, pkcomm_pairwise_many  TransferBatch; as many CTAs as lanes, or fewer
//   pkcomm_put                                 PutWork; any number of CTAs
//   pkcomm_signal, pkcomm_wait_signal          SignalWork, WaitSignalWork; one CTA
#include "collectives/cuda/kernel.cuh"
#include "collectives/cuda/transfer_batch.hpp"
#include "collectives/one_sided.hpp"
#include "collectives/pairwise.hpp"
#include "pkcomm/device.cuh"

namespace pkcomm::cuda {
namespace {

static_assert(device::kLine == kLine && PKCOMM_SIGNALS == kSignals,
              "pkcomm/device.cuh counts as the layout does");

using CopyingPolicy = DevicePolicy<0, 8>;  // few CTAs copy, so that each has to do more at once

constexpr int kIdleRoundsPerLook = 64;  // over a CTA's lanes, between two looks at what else may end the wait

/// A CTA serves every ctas()-th lane, in turns and by steps that do not wait; what is known of each is in shared memory.
template <int kMost>
class Transfers {
 public:
  struct State {
    Lane lane;
    std::int32_t next, end;  // buffers of the batch

    __device__ bool open() const { return next < end; }
  };

  __device__ Transfers(CopyingPolicy& x, const TransferBatch<kMost>& batch, State* states)
      : x_(x), batch_(batch), states_(states) {
    const int cta = x.cta(), ctas = x.ctas();
    lanes_ = batch.lanes > cta ? static_cast<std::uint64_t>((batch.lanes - cta + ctas - 1) / ctas) : 0;
  }

  __device__ bool run() {
    x_.each(lanes_, [&](std::uint64_t i) {
      const auto& lane = batch_.lane[x_.cta() + static_cast<int>(i) * x_.ctas()];
      states_[i] = {open_lane(x_.view(), lane.peer, lane.sends != 0), lane.first, lane.first + lane.count};
    });
    x_.barrier();
    if (!serve()) return false;
    x_.each(lanes_, [&](std::uint64_t i) { close_lane(x_, states_[i].lane); });
    for (int i = 0; i < batch_.copies; ++i) {
      const auto &to = batch_.buffers[2 * i], &from = batch_.buffers[2 * i + 1];
      const Part column = column_of(to.bytes, x_.cta(), x_.ctas());
      x_.copy(to.data + column.begin, from.data + column.begin, column.bytes);
    }
    return true;
  }

 private:
  __device__ Transfer running(const State& state) const {
    const auto& buffer = batch_.buffers[state.next];
    return {buffer.data, buffer.bytes, state.lane.peer, state.lane.sends};
  }

  /// Until all lanes are done; false: given up.
  __device__ bool serve() {
    std::uint64_t started_ns = 0;
    int idle = 0;
    for (;;) {
      bool some = false, any_open = false;
      for (std::uint64_t i = 0; i < lanes_; ++i) {
        if (!states_[i].open()) continue;
        any_open = true;
        some |= advance(i);
      }
      if (x_.failed()) return false;
      if (!any_open) return true;
      if (some) {
        idle = 0;
        started_ns = 0;
      } else if (++idle % kIdleRoundsPerLook == 0) {
        x_.each(lanes_, [&](std::uint64_t i) {
          const State& state = states_[i];
          if (!state.open()) return;
          const Awaited waits = awaited(x_.view(), state.lane, running(state));
          x_.look(state.lane.peer, "transfer", waits.word, waits.wanted, started_ns);
        });
        x_.barrier();
      }
    }
  }

  /// All threads step with a state of their own, alike, and one gives it back.
  __device__ bool advance(std::uint64_t i) {
    State state = states_[i];
    const Progress progress = step(x_, state.lane, running(state));
    if (progress == Progress::kNone || progress == Progress::kFailed) return false;
    if (progress == Progress::kDone) ++state.next;
    x_.barrier();
    if (threadIdx.x == 0) states_[i] = state;
    x_.barrier();
    return true;
  }

  CopyingPolicy& x_;
  const TransferBatch<kMost>& batch_;
  State* const states_;
  std::uint64_t lanes_;
};

template <int kMost>
__device__ __forceinline__ void pairwise(CopyingPolicy& x, const TransferBatch<kMost>& batch) {
  __shared__ typename Transfers<kMost>::State states[kMost];
  Transfers<kMost> transfers(x, batch, states);
  if (batch.op.collective == Collective::kAllToAllV) {
    const Turn turn = enter<true>(x, batch.op);
    if (transfers.run()) x.leave(turn.word, false);
  } else {
    x.epoch();
    transfers.run();
  }
}

}  // namespace
}  // namespace pkcomm::cuda

using namespace pkcomm;
using namespace pkcomm::cuda;

PK_KERNEL_WITH(pkcomm_pairwise_few, CopyingPolicy, TransferBatch<kFewTransfers>, batch, pairwise(x, batch))
PK_KERNEL_WITH(pkcomm_pairwise_many, CopyingPolicy, TransferBatch<kManyTransfers>, batch, pairwise(x, batch))
PK_KERNEL_WITH(pkcomm_put, CopyingPolicy, PutWork, work, put_bytes(x, work))
PK_KERNEL_WITH(pkcomm_signal, CopyingPolicy, SignalWork, work, raise_signal(x, work))
PK_KERNEL_WITH(pkcomm_wait_signal, CopyingPolicy, WaitSignalWork, work, await_signal(x, work))
