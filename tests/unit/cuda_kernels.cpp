// Which kernel serves a call, by name: the table is made from the names in the compiled kernels.
#include <set>
#include <string>

#include "collectives/cuda/kernels.hpp"
#include "collectives/descriptors.hpp"
#include "support/catch.hpp"

using namespace pkcomm;
using cuda::kernel_for;
using cuda::kernels;
using cuda::threads_for;

namespace {

/// 64 bytes of anything, in buffers that are `skew` bytes off.
Operation operation(Collective collective, pkcommDataType_t dtype = pkcommFloat32,
                    numerics::ReduceKind kind = numerics::ReduceKind::kSum, std::uintptr_t skew = 0) {
  Operation op;
  op.collective = collective;
  op.dtype = dtype;
  op.kind = kind;
  op.send = reinterpret_cast<const std::byte*>(0x10000 + skew);
  op.recv = reinterpret_cast<std::byte*>(0x20000);
  op.block = op.block_stride = 64;
  return op;
}

std::string kernel_name(const Operation& op, Algorithm algorithm, int nranks) {
  const auto kernel = kernel_for(op, algorithm, nranks);
  return kernel.ok() ? kernels()[static_cast<std::size_t>(kernel.value())].name : kernel.status().message();
}

}  // namespace

TEST_CASE("every kernel has an image and a name of its own", "[unit][cuda]") {
  std::set<std::string> names;
  for (const cuda::KernelName& kernel : kernels()) {
    CAPTURE(kernel.name);
    REQUIRE(kernel.image >= 0);
    REQUIRE(static_cast<std::size_t>(kernel.image) < cuda::kernel_images().size());
    CHECK(names.insert(kernel.name).second);
  }
  for (const cuda::KernelImage& image : cuda::kernel_images()) {
    CAPTURE(image.name);
    REQUIRE(image.bytes > 16);
    CHECK(*static_cast<const std::uint32_t*>(image.data) == 0xba55ed50);  // a fat binary begins so
  }
}

TEST_CASE("every call of an algorithm that is done by kernels has one", "[unit][cuda]") {
  const auto algorithm = GENERATE(Algorithm::kOneShotLl, Algorithm::kTwoShotLl, Algorithm::kDirectLdst);
  const int nranks = GENERATE(1, 2, 3, 4, 8, 72);
  const std::uintptr_t skew = GENERATE(0u, 4u);
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const bool done = (descriptor(algorithm).collectives & bit(collective)) != 0;
    for (int type = pkcommInt8; type <= pkcommFloat8e5m2; ++type) {
      for (int kind = 0; kind < (reduces(collective) ? numerics::kReduceKinds : 1); ++kind) {
        const Operation op = operation(collective, static_cast<pkcommDataType_t>(type),
                                       static_cast<numerics::ReduceKind>(kind), skew);
        const std::string kernel = kernel_name(op, algorithm, nranks);
        CAPTURE(name(collective), type, kind, nranks, kernel);
        REQUIRE(kernel_for(op, algorithm, nranks).ok() == done);
        if (!done) continue;
        CHECK(kernel.find(name(algorithm)) != std::string::npos);
        if (reduces(collective)) CHECK(kernel.find(numerics::name(op.dtype)) != std::string::npos);
        if (nranks % 2 != 0 || nranks > 8 || skew > 0) CHECK(kernel.find("_of_") == std::string::npos);
      }
    }
  }
}

TEST_CASE("common calls have kernels of their own", "[unit][cuda]") {
  using enum Collective;
  using enum numerics::ReduceKind;
  struct Row {
    const char* why;
    Operation op;
    Algorithm algorithm;
    int nranks;
    const char* expected;
  };
  const auto row = GENERATE(values<Row>({
      {"aligned", operation(kAllReduce), Algorithm::kOneShotLl, 4,
       "pkcomm_all_reduce_one_shot_ll_float_sum_of_4"},
      {"not aligned", operation(kAllReduce, pkcommFloat32, kSum, 4), Algorithm::kOneShotLl, 4,
       "pkcomm_reduce_one_shot_ll_float_sum"},
      {"odd ranks", operation(kAllReduce), Algorithm::kOneShotLl, 3, "pkcomm_reduce_one_shot_ll_float_sum"},
      {"another flow", operation(kReduceScatter, pkcommBfloat16, kAvg), Algorithm::kOneShotLl, 8,
       "pkcomm_reduce_one_shot_ll_bfloat16_avg_of_8"},
      {"two hops", operation(kReduce, pkcommFloat16, kMax), Algorithm::kTwoShotLl, 2,
       "pkcomm_reduce_two_shot_ll_half_max_of_2"},
      {"a rare type", operation(kAllReduce, pkcommFloat8e4m3), Algorithm::kTwoShotLl, 8,
       "pkcomm_reduce_two_shot_ll_f8e4m3_sum"},
      {"large", operation(kAllReduce, pkcommBfloat16), Algorithm::kDirectLdst, 8,
       "pkcomm_reduce_direct_ldst_bfloat16_sum"},
      {"large and rare", operation(kAllReduce, pkcommBfloat16, kProd), Algorithm::kDirectLdst, 8,
       "pkcomm_reduce_direct_ldst_bfloat16"},
      {"moved to all", operation(kAllGather, pkcommInt8), Algorithm::kOneShotLl, 8,
       "pkcomm_all_gather_one_shot_ll_of_8"},
      {"moved", operation(kAllToAll, pkcommInt8), Algorithm::kOneShotLl, 8, "pkcomm_move_one_shot_ll_of_8"},
      {"moved in two hops", operation(kBroadcast), Algorithm::kTwoShotLl, 5, "pkcomm_broadcast_two_shot_ll"},
      {"moved, large", operation(kScatter), Algorithm::kDirectLdst, 5, "pkcomm_move_direct_ldst"},
      {"nothing moves", operation(kBarrier), Algorithm::kOneShotLl, 2, "pkcomm_barrier_one_shot_ll"},
  }));
  CAPTURE(row.why);
  CHECK(kernel_name(row.op, row.algorithm, row.nranks) == row.expected);
}

TEST_CASE("work that is no collective has kernels", "[unit][cuda]") {
  const cuda::OtherKernels& other = cuda::other_kernels();
  const auto named = [](int kernel) { return std::string(kernels()[static_cast<std::size_t>(kernel)].name); };
  CHECK(named(other.pairwise_few) == "pkcomm_pairwise_few");
  CHECK(named(other.pairwise_many) == "pkcomm_pairwise_many");
  CHECK(named(other.put) == "pkcomm_put");
  CHECK(named(other.signal) == "pkcomm_signal");
  CHECK(named(other.wait_signal) == "pkcomm_wait_signal");
}

TEST_CASE("a CTA has a thread for each packet, within bounds", "[unit][cuda]") {
  using enum Collective;
  CHECK(threads_for(kAllReduce, Algorithm::kOneShotLl, 8, 1, 8) == 128);
  CHECK(threads_for(kAllReduce, Algorithm::kOneShotLl, 2048, 1, 8) == 256);
  CHECK(threads_for(kAllReduce, Algorithm::kOneShotLl, 2048, 8, 8) == 128);
  CHECK(threads_for(kAllReduce, Algorithm::kOneShotLl, 1 << 20, 8, 8) == 512);
  CHECK(threads_for(kAllReduce, Algorithm::kTwoShotLl, 16384, 1, 8) == 256);
  CHECK(threads_for(kAllReduce, Algorithm::kDirectLdst, 8, 32, 8) == 512);
  CHECK(threads_for(kBarrier, Algorithm::kOneShotLl, 0, 1, 8) == 128);
}
