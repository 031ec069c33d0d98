// Copies by register loads and stores, by a whole block. Several loads of a thread are in flight together, since one takes
// half a microsecond and more from a peer. Any alignment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pkcomm::cuda {

namespace detail {

// target[i] = unit_at(source + i) for i < n, by all threads of the block.
template <int kTogether, class Unit, class UnitAt>
__device__ __forceinline__ void copy_units(Unit* target, const Unit* source, std::uint64_t n,
                                           const UnitAt& unit_at) {
  const Unit* const end = source + n;
  const unsigned step = blockDim.x;
  source += threadIdx.x;
  target += threadIdx.x;
#pragma unroll 1
  for (; source < end; source += kTogether * step, target += kTogether * step) {
    Unit units[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      if (source + k * step < end) units[k] = unit_at(source + k * step);
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      if (source + k * step < end) target[k * step] = units[k];
    }
  }
}

}  // namespace detail

/// Inlined, since what a call saves of the registers would be copied as well, for every thread.
/// kTogether: loads of a thread in flight, 16 bytes each where `to` and `from` are alike modulo 16.
template <int kTogether>
__device__ __forceinline__ void copy_by_block(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const auto skew = [](const std::byte* a, std::uint64_t unit) {
    return reinterpret_cast<std::uintptr_t>(a) % unit;
  };
  const bool vectors = skew(to, 16) == skew(from, 16);
  // Whole units of the target lie from `head` to `tail`; the bytes around them go one by one.
  const std::uint64_t unit = vectors ? 16 : 8;
  const std::uint64_t to_boundary = (unit - skew(to, unit)) % unit;
  const std::uint64_t head = to_boundary < bytes ? to_boundary : bytes;
  std::uint64_t n = (bytes - head) / unit;
  if (vectors) {
    detail::copy_units<kTogether>(reinterpret_cast<uint4*>(to + head),
                                  reinterpret_cast<const uint4*>(from + head), n,
                                  [](const uint4* vector) { return *vector; });
  } else {
    // A word of the target lies across two of the source. None but words within `from` are read: the first and the last
    // word of the target are left to the bytes where they would need others.
    const std::uint64_t shift = skew(from + head, 8);
    const bool skips = shift > 0 && head < shift;  // the first source word begins before `from`
    const std::uint64_t first = skips ? 1 : 0;
    if (shift > 0 && n > 0 && head + n * 8 - shift + 8 > bytes) --n;
    const auto* const source = reinterpret_cast<const std::uint64_t*>(from + head - shift);
    auto* const target = reinterpret_cast<std::uint64_t*>(to + head);
    const int down = static_cast<int>(shift) * 8;
    detail::copy_units<kTogether>(target + first, source + first, n > first ? n - first : 0,
                                  [down](const std::uint64_t* word) {
                                    return down == 0 ? *word : word[0] >> down | word[1] << (64 - down);
                                  });
    if (skips && n > 0) {
#pragma unroll 1
      for (std::uint64_t i = head + threadIdx.x; i < head + 8; i += blockDim.x) to[i] = from[i];
    }
  }
#pragma unroll 1
  for (std::uint64_t i = threadIdx.x; i < head; i += blockDim.x) to[i] = from[i];
#pragma unroll 1
  for (std::uint64_t i = head + n * unit + threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[i];
}

}  // namespace pkcomm::cuda
