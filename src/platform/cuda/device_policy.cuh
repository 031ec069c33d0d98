// The execution policy of a GPU: what collectives/one_way.hpp asks of one. A CTA is a block of the schedule. A kernel
// makes one policy in every thread and runs one schedule with it; View, DeviceLink and Operation are its `__grid_constant__`
// parameters.
//
// Inside each(), a function concerns the calling thread; outside, the whole block: there one thread waits or stores, and
// a barrier tells the others. So a schedule's control flow is the same in every thread of a block: failed() is a thread's
// own until a barrier, where the block takes the vote.
//
// Programmatic dependent launch: every thread waits for the kernels before this one when the policy is made, on every
// path before it reads a word or touches a peer; the next kernel may start once the epoch has been advanced.
#pragma once

#include <cstdint>

#include "platform/cuda/give_up.cuh"
#include "platform/cuda/ptx.cuh"
#include "protocol/layout.hpp"

namespace pkcomm::cuda {

class DevicePolicy {
 public:
  __device__ DevicePolicy(const View& view, const DeviceLink& link) : view_(view), link_(link) {
    ptx::wait_for_prerequisites();
  }

  __device__ const View& view() const { return view_; }
  __device__ int cta() const { return static_cast<int>(blockIdx.x); }
  __device__ int ctas() const { return static_cast<int>(gridDim.x); }
  /// The first index that each() gives this thread.
  __device__ std::uint64_t first() const { return threadIdx.x; }

  template <class F>
  __device__ void each(std::uint64_t n, F f) {
    alone_ = true;
    for (std::uint64_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
    alone_ = false;
    pending_ = true;
  }
  __device__ void barrier() {
    failed_ = __syncthreads_or(failed_) != 0;
    pending_ = false;
  }
  __device__ bool failed() const { return failed_; }

  /// Operations finished. Poison is looked at on the way, all in flight together: a rank that has given up, or whose peer
  /// has, stores nothing more. Relaxed: written by the kernel before this one, which has ended, or by a peer that has
  /// nothing to publish by it.
  __device__ std::uint64_t epoch() {
    const ControlBlock* const own = view_.control(view_.rank);
    const ptx::Pair words = ptx::load_pair_relaxed_gpu(&own->epoch);
    static_assert(offsetof(ControlBlock, heard) == offsetof(ControlBlock, epoch) + 8);
    failed_ = ptx::load_relaxed_sys(&own->poison) != 0;
    heard_ = words.second;
    return words.first;
  }
  __device__ std::uint64_t heard() const { return heard_; }

  /// Relaxed where it orders nothing but writes after reads that have returned; else release, acquired by await().
  template <bool ordered>
  __device__ void announce(std::uint64_t* word, std::uint64_t value, int) {
    if (failed_) return;
    if constexpr (ordered) {
      ptx::store_release_sys(word, value);
    } else {
      ptx::store_relaxed_sys(word, value);
    }
  }

  /// Each peer's word has a thread of its own. The barrier before makes the block's accesses happen before the release
  /// (PTX ISA, "Memory Consistency Model: Causality Order").
  __device__ void publish(std::uint64_t* word, std::uint64_t value, int peer) {
    if (alone_) {
      if (!failed_) ptx::store_release_sys(word, value);
      return;
    }
    if (pending_) barrier();
    if (threadIdx.x == static_cast<unsigned>(peer) % blockDim.x && !failed_) ptx::store_release_sys(word, value);
  }
  __device__ bool await(const std::uint64_t* word, std::uint64_t wanted, int peer, const char* phase) {
    if (alone_) return await_alone(word, wanted, peer, phase);
    if (threadIdx.x == 0) await_alone(word, wanted, peer, phase);
    barrier();
    return !failed_;
  }
  __device__ bool agrees(const std::uint64_t* word, std::uint64_t expected, int peer) {
    if (alone_ || threadIdx.x == 0) {
      const std::uint64_t seen = ptx::load_acquire_sys(word);
      if (seen != expected && operation_of(seen) == operation_of(expected)) {
        give_up(view_, link_, pkcommMismatch, peer, "agreement", expected, seen);
        failed_ = true;
      }
    }
    if (!alone_) barrier();
    return !failed_;
  }
  __device__ void disagree(int peer, std::uint64_t theirs, std::uint64_t ours) {
    if (threadIdx.x == 0) give_up(view_, link_, pkcommMismatch, peer, "message size", ours, theirs);
    failed_ = true;
  }

  /// The same value in the whole block, whatever happens to the word meanwhile.
  __device__ std::uint64_t load(const std::uint64_t* word) {
    __shared__ std::uint64_t shared;
    if (threadIdx.x == 0) shared = ptx::load_acquire_sys(word);
    barrier();
    const std::uint64_t value = shared;
    barrier();
    return value;
  }
  /// Published by a later publish().
  __device__ void store(std::uint64_t* word, std::uint64_t value) {
    if ((alone_ || threadIdx.x == 0) && !failed_) ptx::store_relaxed_sys(word, value);
    pending_ = true;
  }

  __device__ void put(Packet* packet, std::uint64_t data, std::uint64_t tag) {
    if (!failed_) ptx::store_packet(packet, data, tag);
  }
  __device__ void nudge(int) {}  // nobody sleeps
  __device__ std::uint64_t poll(const Packet* packet, std::uint64_t tag, int peer) {
    std::uint64_t started_ns = 0;
    for (std::uint32_t spins = 1; !failed_; ++spins) {
      const Packet seen = ptx::load_packet(packet);
      if (seen.tag == tag) return seen.data;
      if (spins % kSpinsPerLook == 0) failed_ = in_trouble(view_, link_, peer, "packet", tag, seen.tag, true, started_ns);
    }
    return 0;
  }
  /// Waits for the packets of all ranks at once: their loads are in flight together. See collect() in one_way.hpp.
  template <class PacketOf, class Sink>
  __device__ void collect(int nranks, std::uint64_t tag, const PacketOf& packet_of, const Sink& sink) {
    for (int first = 0; first < nranks; first += kTogether) collect_some(first, nranks, tag, packet_of, sink);
  }

  __device__ void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    const auto misaligned = (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16;
    std::uint64_t done = 0;
    if (misaligned == 0) {
      const std::uint64_t vectors = bytes / 16;
      for (std::uint64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
        reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
      }
      done = vectors * 16;
    }
    for (std::uint64_t i = done + threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[i];
    pending_ = true;
  }
  __device__ void settle() {
    if (pending_) barrier();
  }

  /// The last CTA to come here advances the epoch. The counter's acquire and release make every CTA's accesses happen
  /// before the advance, and so before whatever the next kernel in the stream does, even where a kernel between the two
  /// does not wait for this one. A second operation in flight has advanced the epoch under our feet.
  __device__ bool leave(std::uint64_t m, bool heard) {
    barrier();
    if (threadIdx.x != 0 || failed_) return !failed_;
    if (gridDim.x > 1) {
      if (ptx::add_acq_rel_gpu(link_.ctas_left, 1) + 1 < gridDim.x) return true;
      *link_.ctas_left = 0;
    }
    ControlBlock* const own = view_.control(view_.rank);
    // Read with the epoch by the next operation, which may skip its licence only where both are this operation's.
    if (heard) ptx::store_relaxed_gpu(&own->heard, m);
    const std::uint64_t before = ptx::exchange_if_equal_release_gpu(&own->epoch, m - 1, m);
    if (before != m - 1) {
      give_up(view_, link_, pkcommInvalidUsage, view_.rank, "two operations at once", make_word(m, 0), make_word(before, 0));
      failed_ = true;
    }
    ptx::launch_dependents();
    return !failed_;
  }

 private:
  static constexpr int kTogether = 8;  // packets of one thread in flight; the ranks of most nodes

  __device__ bool await_alone(const std::uint64_t* word, std::uint64_t wanted, int peer, const char* phase) {
    std::uint64_t started_ns = 0;
    for (std::uint32_t spins = 1; !failed_; ++spins) {
      const std::uint64_t seen = ptx::load_acquire_sys(word);
      if (seen >= wanted) return true;
      if (spins % kSpinsPerLook == 0) failed_ = in_trouble(view_, link_, peer, phase, wanted, seen, false, started_ns);
    }
    return false;
  }

  template <class PacketOf, class Sink>
  __device__ void collect_some(int first, int nranks, std::uint64_t tag, const PacketOf& packet_of, const Sink& sink) {
    const Packet* from[kTogether];
    Packet seen[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      from[i] = nullptr;
      if (first + i < nranks) from[i] = packet_of(first + i);
    }
    std::uint64_t started_ns = 0;
    for (std::uint32_t spins = 1;; ++spins) {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        seen[i] = {0, tag};
        if (from[i] != nullptr) seen[i] = ptx::load_packet(from[i]);
      }
      int missing = -1;
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (seen[i].tag != tag) missing = i;
      }
      if (missing < 0 || failed_) break;
      if (spins % kSpinsPerLook == 0) {
        failed_ = in_trouble(view_, link_, first + missing, "packet", tag, 0, true, started_ns);
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (first + i < nranks) sink(first + i, seen[i].data);
    }
  }

  const View& view_;
  const DeviceLink& link_;
  std::uint64_t heard_ = 0;
  bool failed_ = false;
  bool pending_ = false;  // the block has done something since its last barrier
  bool alone_ = false;    // inside each()
};

}  // namespace pkcomm::cuda
