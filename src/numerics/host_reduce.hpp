// Reductions of whole arrays on the host as plain functions, one for each data type and operation, so that
// their users instantiate no templates. Each exists for several instruction sets where that was measured to
// pay; all give the same bits. The functions keep the caller's floating-point environment and are not
// disturbed by it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/dispatch_type.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm::numerics {

/// Reduces `count` elements over `nranks` >= 1 sources in rank order into `dst`, which may be exactly one of
/// the sources and overlaps none otherwise. All are aligned to the element size at least. `scalars` holds
/// each rank's multiplier (scalar_word) for kPreMulSum and is not read for the others.
using ReduceRows = void (*)(std::size_t count, int nranks, const void* const* sources, void* dst,
                            const std::uint64_t* scalars);

/// Instruction sets that functions are compiled for; on other processors than x86-64 only the first. Over
/// arrays of 64 KiB on one Sapphire Rapids core (GCC 12), AVX2 and AVX-512 reach 1.5 and 1.8 times the
/// baseline's rate for float sums over 4 sources, 2 and 3 times for bfloat16 sums over 2.
enum class HostVariant { kBaseline, kAvx2, kAvx512 };

/// The best variant that this processor runs.
HostVariant best_host_variant();

/// Null for an unknown type or operation. `variant` must be one that this processor runs.
ReduceRows host_reduce_rows(pkcommDataType_t dtype, ReduceKind kind,
                            HostVariant variant = best_host_variant());

}  // namespace pkcomm::numerics
