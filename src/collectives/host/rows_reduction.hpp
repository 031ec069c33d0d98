// Reduces rows of elements with the host's functions (numerics/host_reduce.hpp), for the schedules that combine whole
// pieces instead of words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/operation.hpp"
#include "numerics/host_reduce.hpp"
#include "platform/host/policy.hpp"
#include "protocol/layout.hpp"

namespace pkcomm::host {

class RowsReduction {
 public:
  static constexpr bool kReduces = true;

  explicit RowsReduction(const Operation& op)
      : rows_(numerics::host_reduce_rows(op.dtype, op.kind)),
        element_bytes_(numerics::element_size(op.dtype)),
        scaled_(op.kind == numerics::ReduceKind::kPreMulSum) {}

  template <class Sources, class ScalarOf>
  void reduce(Policy& policy, std::uint64_t bytes, int nranks, const Sources& sources, std::byte* to,
              const ScalarOf& scalar_of) const {
    policy.settle();
    if (bytes == 0) return;
    std::array<const void*, kMaxRanks> from;
    std::array<std::uint64_t, kMaxRanks> scalars;
    for (int rank = 0; rank < nranks; ++rank) {
      from[static_cast<std::size_t>(rank)] = sources(rank);
      if (scaled_) scalars[static_cast<std::size_t>(rank)] = scalar_of(rank);
    }
    rows_(bytes / element_bytes_, nranks, from.data(), to, scalars.data());
  }

 private:
  numerics::ReduceRows rows_;
  std::size_t element_bytes_;
  bool scaled_;
};

}  // namespace pkcomm::host
