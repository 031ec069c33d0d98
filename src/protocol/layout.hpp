// Where everything lies in one rank's part of the symmetric memory. Every rank's part starts at base + rank * stride and
// has the same layout, which follows from the configuration alone, never from a call. Control words come first, then
// the staging areas: LL packets, raw slots, copy-engine slots, pair rings; they share no byte (raw data can look like
// a tag). The heap for users follows behind. All is zero before any rank can see it. See docs/protocol.md.
//
// A word that another rank writes has one writer and only grows: {operation: 48, step: 16}. Words of different writers
// are kLine bytes apart, so that no two ranks share a cache line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"

namespace pkcomm {

inline constexpr std::size_t kLine = 64;
inline constexpr int kMaxCtas = 64;  // columns that words are laid out for; the configuration allows no more
inline constexpr int kSignals = 16;  // PKCOMM_SIGNALS
inline constexpr int kCalls = 64;    // recent operations a rank tells its peers about
inline constexpr int kPairChunks = 8;  // chunks in a pair's ring
inline constexpr std::size_t kMaxRanks = 1024;
inline constexpr std::size_t kOwnBytes = 256;

/// An LL packet: 8 bytes of payload and the tag that says they have arrived. One 16-byte store on a GPU; on the host
/// the payload, then the tag released.
struct alignas(16) Packet {
  std::uint64_t data;
  std::uint64_t tag;
};

/// The words of a rank that are not indexed by a peer. Written by the owner unless said otherwise.
struct ControlBlock {
  std::uint64_t magic[2];               // nonce of the communicator: proves that the memory is the right one
  alignas(kLine) std::uint64_t epoch;   // word of the last operation that this rank has finished
  std::uint64_t heard;                  // last operation that heard from every rank
  alignas(kLine) std::uint64_t poison;  // by any peer that gives up: {result: 32, rank + 1: 32}
  std::uint64_t aborted;                // by the owner's process
  alignas(kLine) std::uint32_t sleepers;  // waiters of this rank that sleep on `bell`
  std::uint32_t bell;                     // futex; rung by a writer that saw a sleeper
  alignas(kLine) std::uint64_t left;      // the owner has destroyed its communicator
  alignas(kLine) char error_text[448];    // why the owner gave up; complete before it poisons anybody
};

/// What a rank called, for the peers' messages when calls do not match. Read only when something is wrong.
struct alignas(kLine) CallRecord {
  std::uint64_t word;  // 0: not one of the numbered operations
  std::uint64_t count;
  std::int32_t collective, dtype, op, root;
  std::uint64_t fingerprint;  // of this call alone
};

enum class Area { kRegister, kCopyEngine };  // raw slots written by SMs, and by copy engines

struct Layout {
  std::uint64_t progress, headers, arrive, credit, scalars, signals, pairs, calls, waited;  // word arrays
  std::uint64_t own;                     // kOwnBytes for what the rank's platform keeps to itself
  std::uint64_t ll, raw, engine, rings;  // staging
  std::uint64_t ll_capacity;             // payload bytes of one (parity, half, source); multiple of 8
  std::uint64_t slot_bytes;              // one raw (parity, half, source), multiple of 512
  std::uint64_t engine_bytes;            // the same of the copy engine
  std::uint64_t pair_chunk;              // bytes of one chunk of a pair's ring
  std::uint64_t bytes;                   // of all this; the heap starts here

  /// `staging`: bytes of all this, words and staging areas. Very many ranks may need more for their words.
  static Layout make(int nranks, std::uint64_t staging);
};

/// A pair's ring at the receiver: what the sender writes, and (at the sender) what the receiver gives back.
struct PairWords {
  alignas(kLine) std::uint64_t sent;      // chunks written, ever; by the sender, at the receiver
  std::uint64_t message;                  // messages begun, ever
  std::uint64_t bytes;                    // of message `message`
  alignas(kLine) std::uint64_t consumed;  // chunks read, ever; by the receiver, at the sender
  alignas(kLine) std::uint64_t my_sent;   // owner's own memory of its position towards this peer
  std::uint64_t my_consumed;              // and from this peer
  std::uint64_t messages_out, messages_in;
};

/// All that an operation needs to know of its communicator; trivially copyable, given by value to kernels.
struct View {
  std::byte* base = nullptr;
  std::uint64_t stride = 0;
  int rank = 0;
  int nranks = 1;
  Layout layout{};

  PK_HD std::byte* at(int owner, std::uint64_t offset) const {
    return base + static_cast<std::uint64_t>(owner) * stride + offset;
  }
  PK_HD ControlBlock* control(int owner) const { return reinterpret_cast<ControlBlock*>(at(owner, 0)); }
  PK_HD std::uint64_t* word(int owner, std::uint64_t array, std::uint64_t index) const {
    return reinterpret_cast<std::uint64_t*>(at(owner, array + index * kLine));
  }
  /// Word of the last operation that `source` has entered, as told to `owner`.
  PK_HD std::uint64_t* progress(int owner, int source) const {
    return word(owner, layout.progress, std::uint64_t(source));
  }
  /// Word of the operation whose data `source` has put into its slots of this parity or into user memory, per CTA.
  PK_HD std::uint64_t* header(int owner, std::uint64_t m, int cta, int source) const {
    return word(owner, layout.headers,
                ((m & 1) * kMaxCtas + std::uint64_t(cta)) * std::uint64_t(nranks) + std::uint64_t(source));
  }
  /// Rounds of `source` that have arrived at `owner` in this phase (0 or 1).
  PK_HD std::uint64_t* arrive(int owner, int phase, int cta, int source) const {
    return word(owner, layout.arrive,
                (std::uint64_t(phase) * kMaxCtas + std::uint64_t(cta)) * std::uint64_t(nranks) +
                    std::uint64_t(source));
  }
  /// Rounds that `source` has consumed of what `owner` wrote to it.
  PK_HD std::uint64_t* credit(int owner, int phase, int cta, int source) const {
    return word(owner, layout.credit,
                (std::uint64_t(phase) * kMaxCtas + std::uint64_t(cta)) * std::uint64_t(nranks) +
                    std::uint64_t(source));
  }
  PK_HD Packet* scalar(int owner, std::uint64_t m, int source) const {
    return reinterpret_cast<Packet*>(
        word(owner, layout.scalars, (m & 1) * std::uint64_t(nranks) + std::uint64_t(source)));
  }
  PK_HD std::uint64_t* signal(int owner, int index, int source) const {
    return word(owner, layout.signals, std::uint64_t(source) * kSignals + std::uint64_t(index));
  }
  /// Arrivals of a signal that the owner has already waited for; the owner's own memory.
  PK_HD std::uint64_t* waited(int owner, int index, int source) const {
    return word(owner, layout.waited, std::uint64_t(source) * kSignals + std::uint64_t(index));
  }
  PK_HD PairWords* pair(int owner, int peer) const {
    return reinterpret_cast<PairWords*>(at(owner, layout.pairs)) + peer;
  }
  PK_HD CallRecord* call(int owner, std::uint64_t m) const {
    return reinterpret_cast<CallRecord*>(at(owner, layout.calls)) + m % kCalls;
  }
  PK_HD Packet* packets(int owner, std::uint64_t m, int half, int source) const {
    const std::uint64_t index =
        ((m & 1) * 2 + std::uint64_t(half)) * std::uint64_t(nranks) + std::uint64_t(source);
    return reinterpret_cast<Packet*>(at(owner, layout.ll + index * layout.ll_capacity * 2));
  }
  PK_HD std::byte* slot(Area area, int owner, std::uint64_t m, int half, int source) const {
    const std::uint64_t index =
        ((m & 1) * 2 + std::uint64_t(half)) * std::uint64_t(nranks) + std::uint64_t(source);
    return area == Area::kRegister ? at(owner, layout.raw + index * layout.slot_bytes)
                                   : at(owner, layout.engine + index * layout.engine_bytes);
  }
  PK_HD std::byte* ring(int owner, int source, std::uint64_t chunk) const {
    return at(owner,
              layout.rings + (std::uint64_t(source) * kPairChunks + chunk % kPairChunks) * layout.pair_chunk);
  }
};

/// Words are {operation: 48, step: 16}.
PK_HD inline std::uint64_t make_word(std::uint64_t operation, std::uint64_t step) {
  return operation << 16 | step;
}
PK_HD inline std::uint64_t operation_of(std::uint64_t word) { return word >> 16; }

/// The word of an operation, which its progress word, headers and tags are: {number, fingerprint of its call and of all
/// calls before it}. So two ranks whose calls have differed find it out when they next meet, even if the call in which
/// they differ brought them nothing from each other. `last` is the word of the operation before.
PK_HD inline std::uint64_t next_word(std::uint64_t last, std::uint64_t fingerprint) {
  // Odd, so that a difference stays one; 3 modulo 4, so that a swap of two calls is one. 2^16 / golden ratio.
  constexpr std::uint64_t kFactor = 40503;
  return make_word(operation_of(last) + 1, ((last & 0xffff) * kFactor + fingerprint) & 0xffff);
}

inline constexpr std::uint64_t kMaxRounds = 60000;  // of one operation: steps have 16 bits

}  // namespace pkcomm
