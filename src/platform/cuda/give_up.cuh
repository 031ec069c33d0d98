// How a wait on the device ends when what it waits for does not come: the host aborts, a peer gives up, a peer called
// something else, or the deadline passes. Whoever gives up says so in the error record, once for a communicator, and
// poisons every rank, itself included, so that later launches do nothing. All of it is off the fast path: called every
// kSpinsPerLook failed looks, never inlined. It takes values and kernel parameters (`__grid_constant__`) alone, so that
// the policy stays in registers.
#pragma once

#include <cstdint>

#include "pkcomm/device/ptx.cuh"
#include "platform/cuda/device_link.hpp"
#include "protocol/layout.hpp"

namespace pkcomm::cuda {

namespace ptx = device::ptx;

/// ControlBlock::heard of a rank that has given up. Larger than any operation, so none skips its licence by it.
inline constexpr std::uint64_t kGaveUp = std::uint64_t{1} << 63;
inline constexpr std::uint32_t kSpinsPerLook =
    1024;  // looks at the word between two looks at everything else

__device__ inline std::uint64_t poison_word(pkcommResult_t result, int rank) {
  return static_cast<std::uint64_t>(result) << 32 | static_cast<std::uint32_t>(rank + 1);
}

/// `operation`: its number. `wanted` and `seen` are what the phase compares, sizes in bytes perhaps.
__device__ __noinline__ inline void give_up(const View& view, const DeviceLink& link, Cause cause,
                                            pkcommResult_t result, int peer, const char* phase,
                                            std::uint64_t operation, std::uint64_t wanted,
                                            std::uint64_t seen) {
  if (ptx::exchange_if_equal_release_gpu(&link.words->error_claimed, 0, 1) != 0) return;
  ptx::store_relaxed_sys(&view.control(view.rank)->heard, kGaveUp);
#pragma unroll 1
  for (int copy = 0; copy < 2; ++copy) {
    ErrorRecord* const error = copy == 0 ? &link.words->error : link.error;
    error->operation = operation;
    error->wanted = wanted;
    error->seen = seen;
    error->result = result;
    error->cause = cause;
    error->peer = peer;
    int i = 0;
#pragma unroll 1
    for (; i + 1 < static_cast<int>(sizeof error->phase) && phase[i] != '\0'; ++i) error->phase[i] = phase[i];
    error->phase[i] = '\0';
    // Release half of [error]; acquired by the host before it reads the record. Publishes the fields above.
    ptx::store_release_sys(&error->complete, 1);
  }
  for (int step = 0; step < view.nranks; ++step) {
    const int rank = (view.rank + step) % view.nranks;
    // Release half of [poison]: the record is complete for whoever sees the word. The first to give up is remembered.
    ptx::exchange_if_equal_release_sys(&view.control(rank)->poison, 0, poison_word(result, view.rank));
  }
}

/// What a word must be for a wait to be over.
enum class Until : std::uint32_t {
  kReached,  // at least the wanted value
  kEqual,    // the wanted value: it is a tag
};

/// Looks at everything that can end a wait for `word`, which `peer` writes. 0: the wait is over, and everybody knows; else
/// when it began, as the caller gives it back the next time (0 at first). `entered` is the word of the operation that waits,
/// 0 where it has no number.
__device__ __noinline__ inline std::uint64_t look_round(const View& view, const DeviceLink& link, int peer,
                                                        const char* phase, const std::uint64_t* word,
                                                        std::uint64_t wanted, Until until,
                                                        std::uint64_t entered, std::uint64_t started_ns) {
  // Before the word: a peer that is done for, or elsewhere, has written what it ever will.
  const bool left = ptx::load_acquire_sys(&view.control(peer)->left) != 0;
  const std::uint64_t theirs = ptx::load_acquire_sys(view.progress(view.rank, peer));
  const std::uint64_t seen = ptx::load_acquire_sys(word);
  const std::uint64_t m = operation_of(entered);
  const std::uint64_t now = ptx::nanoseconds();
  if (started_ns == 0) started_ns = now;

  pkcommResult_t result;
  Cause cause;
  std::uint64_t evidence = seen;
  if (const std::uint64_t verdict = ptx::load_acquire_sys(link.verdict); verdict != 0) {
    cause = Cause::kVerdict;
    result = static_cast<pkcommResult_t>(verdict >> 32);
    peer = static_cast<int>(static_cast<std::uint32_t>(verdict)) - 1;
  } else if (const std::uint64_t poison = ptx::load_acquire_sys(&view.control(view.rank)->poison);
             poison != 0) {
    // Acquire half of [poison]: the peer's own record is complete.
    cause = Cause::kPoison;
    result = static_cast<pkcommResult_t>(poison >> 32);
    peer = static_cast<int>(static_cast<std::uint32_t>(poison)) - 1;
  } else if (until == Until::kEqual ? seen == wanted : seen >= wanted) {
    return started_ns;
  } else if (m != 0 && operation_of(theirs) == m && theirs != entered) {
    // It called something else, and may never write the word.
    cause = Cause::kMismatch;
    result = pkcommMismatch;
    wanted = entered;
    evidence = theirs;
  } else if (until == Until::kEqual && operation_of(seen) == operation_of(wanted)) {
    cause = Cause::kMismatch;
    result = pkcommMismatch;
  } else if (left) {
    cause = Cause::kLeft;
    result = pkcommRemoteError;
  } else if (link.deadline_ns != 0 && now - started_ns > link.deadline_ns) {
    cause = Cause::kDeadline;
    result = pkcommTimeout;
  } else {
    return started_ns;
  }
  give_up(view, link, cause, result, peer, phase, m, wanted, evidence);
  return 0;
}

/// Until *word >= wanted, by acquire; false: given up, and everybody knows. Never inlined: schedules wait at many places.
__device__ __noinline__ inline bool await_word(const View& view, const DeviceLink& link, int peer,
                                               const char* phase, const std::uint64_t* word,
                                               std::uint64_t wanted, std::uint64_t entered) {
  std::uint64_t started_ns = 0;
  for (std::uint32_t spins = 1; ptx::load_acquire_sys(word) < wanted; ++spins) {
    if (spins % kSpinsPerLook != 0) continue;
    started_ns = look_round(view, link, peer, phase, word, wanted, Until::kReached, entered, started_ns);
    if (started_ns == 0) return false;
  }
  return true;
}

}  // namespace pkcomm::cuda
