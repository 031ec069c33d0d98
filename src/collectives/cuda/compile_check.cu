// Instantiates the schedules for a GPU, a kernel each, so that a change that only the host can follow does not compile.
// Nothing launches these kernels. Reductions take float and sum; the switch's meaning is done by a loop over the peers,
// so there is no multimem instruction here. Schedules by bulk copy and copy engine are not among them: on a GPU those
// are pipelines of their own.
#include "collectives/direct_staged.hpp"
#include "collectives/direct_zero_copy.hpp"
#include "collectives/movers.hpp"
#include "collectives/multimem.hpp"
#include "collectives/one_shot_ll.hpp"
#include "collectives/pairwise.hpp"
#include "collectives/two_shot_ll.hpp"
#include "platform/cuda/device_policy.cuh"

namespace pkcomm::cuda {
namespace {

using FloatSum = WordReduction<float, numerics::Sum>;

/// Reduces pieces of memory word by word.
struct PieceReduction {
  static constexpr bool kReduces = true;

  template <class Policy, class Sources, class ScalarOf>
  __device__ void reduce(Policy& policy, std::uint64_t bytes, int nranks, const Sources& sources,
                         std::byte* to, const ScalarOf& scalar_of) const {
    policy.each((bytes + 7) / 8, [&](std::uint64_t i) {
      const auto word_of = [&](int rank) { return AnyWords::load(sources(rank), i, bytes); };
      AnyWords::store(to, i, bytes, numerics::reduce_word<float, numerics::Sum>(nranks, word_of, scalar_of));
    });
  }
};

struct PeerLoop {
  template <class Policy>
  __device__ void reduce(Policy& policy, const Operation&, std::uint64_t offset, std::uint64_t bytes,
                         std::byte* to) {
    const View& view = policy.view();
    PieceReduction().reduce(
        policy, bytes, view.nranks, [&](int rank) -> const std::byte* { return view.at(rank, offset); }, to,
        numerics::NoScalars{});
  }
  template <class Policy>
  __device__ void store(Policy& policy, std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
    const View& view = policy.view();
    for (int step = 0; step < view.nranks; ++step) {
      std::byte* const to = view.at(rank_at(view, step), offset);
      if (to != from) policy.copy(to, from, bytes);
    }
  }
  template <class Policy>
  __device__ void drain(Policy& policy) {
    policy.settle();
  }
};

}  // namespace

#define PK_CHECK_KERNEL(name, ranks, ...)                                                          \
  __global__ void name(const __grid_constant__ View view, const __grid_constant__ DeviceLink link, \
                       const __grid_constant__ Operation op) {                                     \
    DevicePolicy<ranks> x(view, link);                                                             \
    __VA_ARGS__;                                                                                   \
  }

PK_CHECK_KERNEL(barrier_ll_kernel, 0, barrier_ll(x, op))
PK_CHECK_KERNEL(movement_one_shot_ll_kernel, 0, one_shot_ll<Movement>(x, op))
PK_CHECK_KERNEL(reduction_one_shot_ll_kernel, 0, one_shot_ll<FloatSum>(x, op))
PK_CHECK_KERNEL(all_reduce_one_shot_ll_kernel_of_4, 4,
                one_shot_ll<FloatSum, WholeWords>(x, op, FullExchange{op}))
PK_CHECK_KERNEL(reduction_two_shot_ll_kernel_of_4, 4, two_shot_ll<FloatSum, WholeWords>(x, op))
PK_CHECK_KERNEL(premul_one_shot_ll_kernel, 0, one_shot_ll<WordReduction<float, numerics::PreMulSum>>(x, op))
PK_CHECK_KERNEL(average_one_shot_ll_kernel, 0,
                one_shot_ll<WordReduction<numerics::Bfloat16, numerics::Avg>>(x, op))
PK_CHECK_KERNEL(movement_two_shot_ll_kernel, 0, two_shot_ll<Movement>(x, op))
PK_CHECK_KERNEL(reduction_two_shot_ll_kernel, 0, two_shot_ll<FloatSum>(x, op))
PK_CHECK_KERNEL(exchange_staged_kernel, 0, exchange_staged<RegisterMover>(x, op, Movement{}))
PK_CHECK_KERNEL(reduce_scatter_staged_kernel, 0, exchange_staged<RegisterMover>(x, op, PieceReduction{}))
PK_CHECK_KERNEL(all_reduce_staged_kernel, 0, reduce_twice_staged<RegisterMover>(x, op, PieceReduction{}))
PK_CHECK_KERNEL(push_zero_copy_kernel, 0, push_zero_copy<RegisterMover>(x, op))
PK_CHECK_KERNEL(pull_zero_copy_kernel, 0, pull_zero_copy<RegisterMover>(x, op, Movement{}))
PK_CHECK_KERNEL(reduce_scatter_zero_copy_kernel, 0, pull_zero_copy<RegisterMover>(x, op, PieceReduction{}))
PK_CHECK_KERNEL(all_reduce_zero_copy_kernel, 0, all_reduce_zero_copy<RegisterMover>(x, op, PieceReduction{}))
PK_CHECK_KERNEL(multimem_by_peer_loop_kernel, 0, PeerLoop fabric; multimem(x, op, fabric))

__global__ void pairwise_kernel(const __grid_constant__ View view, const __grid_constant__ DeviceLink link,
                                Transfer* transfers) {
  DevicePolicy<> x(view, link);
  x.epoch();
  step(x, transfers[blockIdx.x]);
}

}  // namespace pkcomm::cuda
