// pkcomm inside your own kernels: reach the peers' symmetric memory, and tell them that something is there. The view of a
// communicator comes from pkcommCommGetDeviceView and is given to a kernel by value. Needs sm_90 or newer and C++17.
//
//   __global__ void exchange(pkcommDeviceView_t view, float* mine, int peer) {   // `mine`: pkcommHeapAlloc'ed
//     float* const theirs = pkcomm::device::at_peer(view, mine, peer);
//     theirs[threadIdx.x] = ...;
//     __syncthreads();
//     if (threadIdx.x == 0) pkcomm::device::signal(view, peer, 0);
//     if (!pkcomm::device::wait_block(view, peer, 0, 1)) return;
//     ... mine[threadIdx.x] is what the peer has written ...
//   }
//
// Signals are those of pkcommSignal and pkcommWaitSignal: either end may be a kernel of yours or a call. All kernels that
// wait for each other must be resident at once, and nothing may be loaded behind a kernel that waits.
#pragma once

#include <cstdint>

#include "pkcomm/device/ptx.cuh"
#include "pkcomm/pkcomm.h"

namespace pkcomm::device {

/// Bytes between two words of different writers.
inline constexpr std::uint64_t kLine = 64;

/// The address, in this device's view, of what `own`, an address of this rank's symmetric memory, is at `peer`.
template <class T>
__device__ __forceinline__ T* at_peer(const pkcommDeviceView_t& view, T* own, int peer) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(own) +
                              static_cast<std::int64_t>(peer - view.rank) *
                                  static_cast<std::int64_t>(view.stride));
}

namespace detail {

/// Where `source` counts its arrivals of a signal at `owner`; what `owner` has waited for lies in the same order.
__device__ __forceinline__ std::uint64_t* word(const pkcommDeviceView_t& view, std::uint64_t array, int owner,
                                               int source, int index) {
  const std::uint64_t place =
      static_cast<std::uint64_t>(source) * PKCOMM_SIGNALS + static_cast<std::uint64_t>(index);
  return reinterpret_cast<std::uint64_t*>(static_cast<char*>(view.base) +
                                          static_cast<std::uint64_t>(owner) * view.stride + array +
                                          place * kLine);
}

// Looks at the word between two looks at everything else.
inline constexpr std::uint32_t kSpinsPerLook = 1024;

}  // namespace detail

/// Adds one arrival to signal `index` (0 to PKCOMM_SIGNALS - 1) of `peer`. By one thread of the rank at a time.
/// Release half of [signal], scope sys; acquired by wait(), wait_block() or pkcommWaitSignal at the peer. Publishes this
/// thread's earlier stores and, by a __syncthreads() before it, those of its block ("Memory Consistency Model: Causality
/// Order").
__device__ inline void signal(const pkcommDeviceView_t& view, int peer, int index) {
  // Relaxed: this rank is the word's only writer.
  std::uint64_t* const word = detail::word(view, view.signals, peer, view.rank, index);
  ptx::store_release_sys(word, ptx::load_relaxed_sys(word) + 1);
}

/// Until `arrivals` more arrivals of signal `index` have come from `peer` than were waited for before. By one thread of the
/// rank at a time; acquire half of [signal]. False: given up, since the communicator was aborted, a rank of it has given up,
/// or the deadline of its waits has passed; the arrivals then count as not waited for, and the kernel should end.
__device__ inline bool wait(const pkcommDeviceView_t& view, int peer, int index, std::uint64_t arrivals) {
  const std::uint64_t* const word = detail::word(view, view.signals, view.rank, peer, index);
  std::uint64_t* const waited = detail::word(view, view.waited, view.rank, peer, index);
  const std::uint64_t wanted = ptx::load_relaxed_sys(waited) + arrivals;  // relaxed: this rank's own word
  const auto* const poison = reinterpret_cast<const std::uint64_t*>(
      static_cast<char*>(view.base) + static_cast<std::uint64_t>(view.rank) * view.stride + view.poison);
  std::uint64_t started_ns = 0;
  for (std::uint32_t spins = 1; ptx::load_acquire_sys(word) < wanted; ++spins) {
    if (spins % detail::kSpinsPerLook != 0) continue;
    // Relaxed: nothing is read on the strength of them.
    if (ptx::load_relaxed_sys(view.verdict) != 0 || ptx::load_relaxed_sys(poison) != 0) return false;
    const std::uint64_t now = ptx::nanoseconds();
    if (started_ns == 0) started_ns = now;
    if (view.deadline_ns != 0 && now - started_ns > view.deadline_ns) return false;
  }
  ptx::store_relaxed_sys(waited, wanted);
  return true;
}

/// wait() for the whole block: one thread waits, and all have the answer and see what was published. Every thread calls it.
__device__ inline bool wait_block(const pkcommDeviceView_t& view, int peer, int index,
                                  std::uint64_t arrivals) {
  int come = 1;
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
    come = wait(view, peer, index, arrivals) ? 1 : 0;
  return __syncthreads_and(come) != 0;
}

/// Copies `bytes` bytes by the whole block, 16 at a time where both ends are aligned to them. Not published: signal() behind
/// a __syncthreads() does that.
__device__ inline void copy_block(void* to, const void* from, std::uint64_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  const std::uint64_t vectors = address % sizeof(uint4) == 0 ? bytes / sizeof(uint4) : 0;
  for (std::uint64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    static_cast<uint4*>(to)[i] = static_cast<const uint4*>(from)[i];
  }
  for (std::uint64_t i = vectors * sizeof(uint4) + threadIdx.x; i < bytes; i += blockDim.x) {
    static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  }
}

/// 8 bytes that arrive together with their tag, in one access: no signal is needed. `packet`: 16 bytes of symmetric memory,
/// aligned to them. Whoever reads it must not find this tag there before: use each tag once, and clear the packets at their
/// owner, and let everybody know, before the first.
__device__ __forceinline__ void put_packet(void* packet, std::uint64_t data, std::uint64_t tag) {
  ptx::store_packet(packet, data, tag);
}
/// True, with the payload in `data`, once the packet has this tag; looks once.
__device__ __forceinline__ bool get_packet(const void* packet, std::uint64_t tag, std::uint64_t& data) {
  const ptx::TaggedWord seen = ptx::load_packet(packet);
  data = seen.data;
  return seen.tag == tag;
}

}  // namespace pkcomm::device
