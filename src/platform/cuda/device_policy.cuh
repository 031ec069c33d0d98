// The execution policy of a GPU: what collectives/one_way.hpp asks of one. A CTA is a block of the schedule. A kernel
// makes one policy in every thread and runs one schedule with it; View, DeviceLink and Operation are its `__grid_constant__`
// parameters.
//
// Inside each(), a function concerns the calling thread; outside, the whole block: there one thread waits or stores, and
// a barrier tells the others. So a schedule's control flow is the same in every thread of a block: failed() is a thread's
// own until a barrier, where the block takes the vote.
//
// Programmatic dependent launch: every thread waits for the kernels before this one in epoch(), which every schedule calls
// before it reads a word or touches a peer. A kernel whose schedule has no number calls epoch() all the same. Nothing
// triggers the next kernel but this one's end: an explicit trigger behind the epoch's advance gains 0.02 us, and a fence
// before it, without which the advance need not be visible, costs 0.3 (docs/design/0002-one-source.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/cuda/copy.cuh"
#include "platform/cuda/give_up.cuh"
#include "protocol/layout.hpp"

namespace pkcomm::cuda {

/// kRanks: the communicator's ranks where a kernel is compiled for that number alone, 0 for any. kCopiesTogether: loads of
/// a thread that a copy keeps in flight. 4 of 512 threads, 32 KiB, are what the way to a peer and back holds where many CTAs
/// copy.
template <int kRanksOrAny = 0, int kCopiesTogether = 4>
class DevicePolicy {
 public:
  static constexpr int kRanks = kRanksOrAny;
  static constexpr int kChunksTogether = kPairChunks / 2;  // a release is dear: half of the ring for one

  __device__ DevicePolicy(const View& view, const DeviceLink& link) : given_(view), view_(view), link_(link) {
    if constexpr (kRanks > 0) view_.nranks = kRanks;
    __builtin_assume(view_.rank >= 0 && view_.rank < view_.nranks);
  }

  __device__ const View& view() const { return view_; }
  __device__ int cta() const { return static_cast<int>(blockIdx.x); }
  __device__ int ctas() const { return static_cast<int>(gridDim.x); }
  template <class F>
  __device__ void each(std::uint64_t n, F f) {
    alone_ = true;
#pragma unroll 1
    for (std::uint64_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
    alone_ = false;
    pending_ = true;
  }
  /// The calling thread among those of all CTAs.
  __device__ std::uint32_t thread() const { return blockIdx.x * blockDim.x + threadIdx.x; }
  __device__ std::uint32_t threads() const { return gridDim.x * blockDim.x; }
  __device__ void barrier() {
    if (__syncthreads_or(failed()) != 0) fail();
    pending_ = false;
  }
  __device__ bool failed() const { return heard_ >= kGaveUp; }

  /// Relaxed: written by kernels before this one, which have ended. Nothing waits for the words yet. A
  /// rank that has given up finds it out here and sends nothing more; what a peer gave up, its next wait finds out.
  __device__ std::uint64_t epoch() {
    ptx::wait_for_prerequisites();
    static_assert(offsetof(ControlBlock, heard) == offsetof(ControlBlock, epoch) + 8);
    const ptx::Pair words = ptx::load_pair_relaxed_gpu(&view_.control(view_.rank)->epoch);
    begun_ = ptx::load_relaxed_gpu(&link_.words->begun);
    poison_ = ptx::load_relaxed_sys(&view_.control(view_.rank)->poison);
    heard_ = words.second;
    return words.first;
  }
  __device__ std::uint64_t heard() {
    heed_poison();
    return heard_;
  }
  __device__ void enters(std::uint64_t word) { entered_ = word; }
  /// The last thread of the block has the least to do besides.
  __device__ void record(const CallRecord& call) {
    if (threadIdx.x + 1 == blockDim.x) *view_.call(view_.rank, operation_of(call.word)) = call;
  }

  /// As many operations must have begun as have ended: else a graph is replayed beside another, now or the time before.
  /// Relaxed where it orders nothing but writes after reads that have returned; else release, acquired by await().
  template <bool ordered>
  __device__ void announce(std::uint64_t* word, std::uint64_t value, int) {
    heed_poison();
    if (failed()) return;
    if (threadIdx.x == 0 && !counted_) {
      counted_ = true;
      const std::uint64_t m = operation_of(value);
      if (begun_ != m - 1) [[unlikely]] {
        give_up(given_, link_, Cause::kConcurrent, pkcommInvalidUsage, view_.rank, "start", m, m - 1, begun_);
        fail();
      }
      ptx::increment_relaxed_gpu(&link_.words->begun);
    }
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
      if (!failed()) ptx::store_release_sys(word, value);
      return;
    }
    if (pending_) barrier();
    if (threadIdx.x == static_cast<unsigned>(peer) % blockDim.x && !failed())
      ptx::store_release_sys(word, value);
  }
  __device__ bool await(const std::uint64_t* word, std::uint64_t wanted, int peer, const char* phase) {
    if (alone_) return await_alone(word, wanted, peer, phase);
    if (threadIdx.x == 0) await_alone(word, wanted, peer, phase);
    barrier();
    return !failed();
  }
  /// For a loop that waits by itself: looks at everything that may end a wait for *word >= wanted. `started_ns`: 0 at first.
  __device__ void look(int peer, const char* phase, const std::uint64_t* word, std::uint64_t wanted,
                       std::uint64_t& started_ns) {
    if (!failed()) look_round(peer, phase, word, wanted, Until::kReached, started_ns);
  }
  __device__ bool demand(const std::uint64_t* word, std::uint64_t wanted, int peer) {
    return compare(word, wanted, peer, false);
  }
  __device__ bool agrees(const std::uint64_t* word, std::uint64_t wanted, int peer) {
    return compare(word, wanted, peer, true);
  }
  __device__ void disagree(int peer, std::uint64_t theirs, std::uint64_t ours) {
    if (threadIdx.x == 0) {
      give_up(given_, link_, Cause::kMismatch, pkcommMismatch, peer, "message size", operation_of(entered_),
              ours, theirs);
    }
    fail();
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
    if ((alone_ || threadIdx.x == 0) && !failed()) ptx::store_relaxed_sys(word, value);
    pending_ = true;
  }

  __device__ void put(Packet* packet, std::uint64_t data, std::uint64_t tag) {
    if (!failed()) ptx::store_packet(packet, data, tag);
  }
  __device__ void nudge(int) {}  // nobody sleeps
  __device__ std::uint64_t poll(const Packet* packet, std::uint64_t tag, int peer) {
    std::uint64_t started_ns = 0;
    for (std::uint32_t spins = 1; !failed(); ++spins) {
      const ptx::TaggedWord seen = ptx::load_packet(packet);
      if (seen.tag == tag) return seen.data;
      if (spins % kSpinsPerLook == 0) [[unlikely]]
        look_round(peer, "packet", &packet->tag, tag, Until::kEqual, started_ns);
    }
    return 0;
  }
  /// Waits for the packets of all ranks at once: their loads are in flight together. See collect() in one_way.hpp.
  template <class ComesFrom, class PacketOf, class Sink>
  __device__ void collect(std::uint64_t tag, const ComesFrom& comes_from, const PacketOf& packet_of,
                          const Sink& sink) {
    for (int first = 0; first < view_.nranks; first += kTogether)
      collect_some(first, tag, comes_from, packet_of, sink);
  }

  __device__ void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    copy_by_block<kCopiesTogether>(to, from, bytes);
    pending_ = true;
  }
  /// The block has stored something by other means than this policy.
  __device__ void stored() { pending_ = true; }
  __device__ void settle() {
    if (pending_) barrier();
  }

  /// The last CTA to come here advances the epoch. Relaxed, all of it: who reads these words waits for this kernel's end.
  __device__ bool leave(std::uint64_t word, bool heard) {
    barrier();
    if (threadIdx.x != 0 || failed()) return !failed();
    const std::uint32_t last = gridDim.x - 1;
    if (last > 0 && ptx::count_relaxed_gpu(&link_.words->ctas_left, last) != last) return true;
    ptx::store_pair_relaxed_gpu(&view_.control(view_.rank)->epoch,
                                {word, heard ? operation_of(word) : heard_});
    return true;
  }

 private:
  static constexpr int kTogether = kRanks == 0  ? 4
                                   : kRanks < 8 ? kRanks
                                                : 8;  // packets of one thread in flight

  __device__ void fail() { heard_ |= kGaveUp; }
  __device__ void look_round(int peer, const char* phase, const std::uint64_t* word, std::uint64_t wanted,
                             Until until, std::uint64_t& started_ns) {
    started_ns = cuda::look_round(given_, link_, peer, phase, word, wanted, until, entered_, started_ns);
    if (started_ns == 0) fail();
  }

  /// Nothing begins once a peer has given up: the communicator has failed. Looked at as late as the epoch, with which it
  /// was loaded.
  __device__ void heed_poison() {
    if (poison_ == 0 || failed()) [[likely]]
      return;
    give_up(given_, link_, Cause::kPoison, static_cast<pkcommResult_t>(poison_ >> 32),
            static_cast<int>(static_cast<std::uint32_t>(poison_)) - 1, "start", operation_of(entered_), 0,
            poison_);
    fail();
  }
  __device__ bool compare(const std::uint64_t* word, std::uint64_t wanted, int peer, bool later_will_do) {
    if (alone_ || threadIdx.x == 0) {
      const std::uint64_t seen = ptx::load_acquire_sys(word);
      if (seen != wanted && !(later_will_do && operation_of(seen) > operation_of(wanted))) {
        give_up(given_, link_, Cause::kMismatch, pkcommMismatch, peer, "agreement", operation_of(entered_),
                wanted, seen);
        fail();
      }
    }
    if (!alone_) barrier();
    return !failed();
  }
  __device__ bool await_alone(const std::uint64_t* word, std::uint64_t wanted, int peer, const char* phase) {
    if (!failed() && !await_word(given_, link_, peer, phase, word, wanted, entered_)) fail();
    return !failed();
  }

  template <class ComesFrom, class PacketOf, class Sink>
  __device__ void collect_some(int first, std::uint64_t tag, const ComesFrom& comes_from,
                               const PacketOf& packet_of, const Sink& sink) {
    const Packet* from[kTogether];
    bool awaited[kTogether];
    ptx::TaggedWord seen[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (first + i >= view_.nranks) break;
      from[i] = packet_of(first + i);
      awaited[i] = first + i != view_.rank && comes_from(first + i);
      seen[i] = {0, tag};
    }
    std::uint64_t started_ns = 0;
    for (std::uint32_t spins = 1;; ++spins) {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (first + i >= view_.nranks) break;
        if (awaited[i]) seen[i] = ptx::load_packet(from[i]);
      }
      bool all = true;
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (first + i >= view_.nranks) break;
        all = all && seen[i].tag == tag;
      }
      if (all || failed()) break;
      if (spins % kSpinsPerLook == 0) [[unlikely]] {
        // At one of the missing ones, at each in turn.
        const int turn = static_cast<int>(spins / kSpinsPerLook % kTogether);
        int missing = -1;
        const Packet* packet = nullptr;
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          if (first + i < view_.nranks && seen[i].tag != tag && (missing < 0 || i <= turn)) {
            missing = i;
            packet = from[i];
          }
        }
        look_round(first + missing, "packet", &packet->tag, tag, Until::kEqual, started_ns);
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (first + i >= view_.nranks) break;
      sink(first + i, seen[i].data);
    }
  }

  const View& given_;  // the kernel's parameter, for code that is not inlined
  View view_;
  const DeviceLink& link_;
  std::uint64_t entered_ = 0;  // word of the running operation; 0: it has no number
  std::uint64_t heard_ = 0;    // and kGaveUp once failed: one word, not looked at before it is needed
  std::uint64_t begun_ = 0;    // operations begun before this one
  std::uint64_t poison_ = 0;   // as it was when the kernel began
  bool counted_ = false;       // in begun
  bool pending_ = false;       // the block has done something since its last barrier
  bool alone_ = false;         // inside each()
};

}  // namespace pkcomm::cuda
