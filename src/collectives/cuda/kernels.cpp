// The choice of kernels. Their names are made from those of types and operations once, when first asked for; later choices
// look into tables.
#include "collectives/cuda/kernels.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <unordered_map>

#include "collectives/descriptors.hpp"
#include "numerics/dispatch_type.hpp"

namespace pkcomm::cuda {
namespace {

constexpr int kTypes = pkcommFloat8e5m2 + 1;
constexpr int kNone = -1;

/// Kernels that do the same: for any call, and for whole words of 2, 4 and 8 ranks, as far as there are such.
struct Variants {
  int any = kNone;
  std::array<int, 3> of{kNone, kNone, kNone};

  int best(int nranks, bool whole_words) const {
    const auto ranks = static_cast<unsigned>(nranks);
    if (whole_words && nranks >= 2 && nranks <= 8 && std::has_single_bit(ranks)) {
      const int special = of[static_cast<std::size_t>(std::countr_zero(ranks) - 1)];
      if (special != kNone) return special;
    }
    return any;
  }
};

/// Of one type and operation.
struct Reductions {
  Variants one_shot, all_reduce_one_shot, two_shot;
  int direct = kNone;
};

class Table {
 public:
  Table() {
    int i = 0;
    for (const KernelName& kernel : kernels()) indices_.emplace(kernel.name, i++);
    barrier_ = find("barrier_one_shot_ll");
    move_one_shot_ = variants("move_one_shot_ll");
    all_gather_one_shot_ = variants("all_gather_one_shot_ll");
    broadcast_two_shot_ = variants("broadcast_two_shot_ll");
    move_direct_ = find("move_direct_ldst");
    for (int type = 0; type < kTypes; ++type) {
      const std::string of_type = std::string("_") + numerics::name(static_cast<pkcommDataType_t>(type));
      for (int kind = 0; kind < numerics::kReduceKinds; ++kind) {
        const std::string of_both = of_type + "_" + numerics::name(static_cast<numerics::ReduceKind>(kind));
        Reductions& entry = reductions_[static_cast<std::size_t>(type)][static_cast<std::size_t>(kind)];
        entry.one_shot = variants("reduce_one_shot_ll" + of_both);
        entry.all_reduce_one_shot = variants("all_reduce_one_shot_ll" + of_both);
        entry.two_shot = variants("reduce_two_shot_ll" + of_both);
        entry.direct = find("reduce_direct_ldst" + of_both);
        if (entry.direct == kNone) entry.direct = find("reduce_direct_ldst" + of_type);
      }
    }
    other = {find("pairwise_few"), find("pairwise_many"), find("put"), find("signal"), find("wait_signal")};
  }

  int kernel_for(const Operation& op, Algorithm algorithm, int nranks) const {
    if (!(descriptor(algorithm).collectives & bit(op.collective))) return kNone;
    const bool words = WholeWords::serve(op);
    const Reductions* reduction = nullptr;
    if (reduces(op.collective)) {
      if (op.dtype < 0 || op.dtype >= kTypes) return kNone;
      reduction = &reductions_[static_cast<std::size_t>(op.dtype)][static_cast<std::size_t>(op.kind)];
    }
    switch (algorithm) {
      case Algorithm::kOneShotLl:
        if (op.collective == Collective::kBarrier) return barrier_;
        return one_shot(op.collective, reduction, nranks, words);
      case Algorithm::kTwoShotLl:
        return (reduction ? reduction->two_shot : broadcast_two_shot_).best(nranks, words);
      case Algorithm::kDirectLdst:
        return reduction ? reduction->direct : move_direct_;
      default:
        return kNone;
    }
  }

  OtherKernels other{};

 private:
  int one_shot(Collective collective, const Reductions* reduction, int nranks, bool words) const {
    if (FullExchange::serves(collective)) {
      const Variants& full = reduction ? reduction->all_reduce_one_shot : all_gather_one_shot_;
      if (const int special = full.best(nranks, words); special != kNone) return special;
    }
    return (reduction ? reduction->one_shot : move_one_shot_).best(nranks, words);
  }

  int find(const std::string& name) const {
    const auto found = indices_.find("pkcomm_" + name);
    return found == indices_.end() ? kNone : found->second;
  }
  Variants variants(const std::string& name) const {
    return {find(name), {find(name + "_of_2"), find(name + "_of_4"), find(name + "_of_8")}};
  }

  std::unordered_map<std::string, int> indices_;
  std::array<std::array<Reductions, numerics::kReduceKinds>, kTypes> reductions_;
  Variants move_one_shot_, all_gather_one_shot_, broadcast_two_shot_;
  int barrier_ = kNone, move_direct_ = kNone;
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

Result<int> kernel_for(const Operation& op, Algorithm algorithm, int nranks) {
  const int kernel = table().kernel_for(op, algorithm, nranks);
  if (kernel != kNone) return kernel;
  return Status(pkcommUnsupported, "no kernel runs " + std::string(name(op.collective)) + " of " +
                                       numerics::name(op.dtype) + " by " + std::string(name(algorithm)));
}

int threads_for(Collective collective, Algorithm algorithm, std::uint64_t block_bytes, int ctas, int nranks) {
  if (collective == Collective::kBarrier) return kFewestThreads;
  if (descriptor(algorithm).route != Route::kPackets) return kMostThreads;
  // A thread for each packet, as far as there are threads: every packet more on a thread is another round trip to memory.
  const std::uint64_t bytes =
      algorithm == Algorithm::kTwoShotLl ? slice_of(block_bytes, 0, nranks).bytes : block_bytes;
  const std::uint64_t packets = (bytes + 7) / 8, columns = static_cast<std::uint64_t>(ctas);
  const std::uint64_t each = (packets + columns - 1) / columns;
  return static_cast<int>(std::clamp<std::uint64_t>(std::bit_ceil(each), kFewestThreads, kMostThreads));
}

const OtherKernels& other_kernels() noexcept { return table().other; }

}  // namespace pkcomm::cuda
