// One reduction done in each way that there is, for the tests of numerics/: arrays by the host's function
// table in every instruction set, out of place and in place, and 8-byte words as packets carry them. All must
// agree, so that a test states a rule once.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "numerics/dispatch_type.hpp"
#include "numerics/host_reduce.hpp"
#include "support/numerics_reference.hpp"

namespace pkcomm::test {

/// Reduces `count` elements of each source and checks that every way gives the same. `scalars` has a word for
/// each rank.
std::vector<unsigned char> reduce_every_way(pkcommDataType_t dtype, numerics::ReduceKind kind,
                                            std::size_t count, const std::vector<const void*>& sources,
                                            const std::vector<std::uint64_t>& scalars);

/// Whether the arrays have the same bits, or NaNs in the same places.
bool all_same(pkcommDataType_t dtype, const void* a, const void* b, std::size_t count);

/// The instruction sets that this processor runs.
std::vector<numerics::HostVariant> host_variants();

template <class T>
using PerRank = std::vector<std::vector<T>>;

template <class T>
constexpr pkcommDataType_t data_type() {
  for (int dtype = 0; dtype < PKCOMM_DATA_TYPES; ++dtype) {
    const auto found = static_cast<pkcommDataType_t>(dtype);
    if (numerics::visit_type(found, []<class U>() { return std::is_same_v<T, U>; })) return found;
  }
  return static_cast<pkcommDataType_t>(PKCOMM_DATA_TYPES);  // no data type
}

template <class Op>
constexpr numerics::ReduceKind reduce_kind() {
  for (int kind = 0; kind < numerics::kReduceKinds; ++kind) {
    const auto found = static_cast<numerics::ReduceKind>(kind);
    if (numerics::visit_reduction(pkcommInt8, found, []<class, class O>() { return std::is_same_v<Op, O>; }))
      return found;
  }
  return static_cast<numerics::ReduceKind>(numerics::kReduceKinds);  // no operation
}

template <class T>
std::vector<T> reduce(numerics::ReduceKind kind, const PerRank<T>& x, const std::vector<T>& multipliers) {
  std::vector<const void*> sources;
  for (const auto& elements : x) sources.push_back(elements.data());
  std::vector<std::uint64_t> scalars;
  for (const T multiplier : multipliers) scalars.push_back(numerics::scalar_word(multiplier));
  scalars.resize(x.size());
  const auto bytes = reduce_every_way(data_type<T>(), kind, x[0].size(), sources, scalars);
  std::vector<T> result(x[0].size());
  if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

template <class T, class Op>
std::vector<T> reduce(const PerRank<T>& x, const std::vector<T>& multipliers = {}) {
  return reduce<T>(reduce_kind<Op>(), x, multipliers);
}

/// One element of each rank.
template <class T, class Op>
T reduce_single(const std::vector<T>& x, const std::vector<T>& multipliers = {}) {
  PerRank<T> one;
  for (const T value : x) one.push_back({value});
  return reduce<T>(reduce_kind<Op>(), one, multipliers)[0];
}

}  // namespace pkcomm::test
