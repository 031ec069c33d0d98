// Calls of random kind, size, type, operation, root and place, each a pure function of a seed and its number, so that ranks
// agree on them without a word and a failure can be repeated. What a call must give is computed by a serial reference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/memory.hpp"

namespace pkcomm::test {

/// `salt` tells the uses of one call apart.
std::uint64_t random_word(std::uint64_t seed, std::uint64_t call, std::uint64_t salt);

/// What is called, equal on all ranks.
struct CallPlan {
  pkcommCollective_t kind;
  pkcommDataType_t type;
  pkcommRedOp_t op;
  std::size_t count;  ///< as given to the call; all_to_all_v: the most of a pair
  int root;           ///< send/recv: how many ranks further the receiver is
  bool in_place;
  Place place;

  static CallPlan make(std::uint64_t seed, std::uint64_t call, int nranks);
  bool reduces() const;
  std::string describe() const;
};

/// One rank's part in one call, with its buffers; enqueued once, or replayed by a graph, with new data each round.
class MixedCall {
 public:
  /// The most bytes of one buffer.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 21;
  /// Two blocks of the heap, each of Memory::with_guards(kMostBytes) bytes.
  struct Heap {
    std::byte *send, *recv;
    static Heap allocate(Rank& self);
  };

  /// Everything is enqueued on the stream of `self`.
  MixedCall(std::uint64_t seed, std::uint64_t call, const Rank& self, const Heap& heap);

  /// Sets the test's view of the buffers; nothing may be under way.
  void write(std::uint64_t round);
  /// Upload, call, download.
  bool enqueue();
  /// After synchronising: the output and the guards.
  bool check(std::uint64_t round);

 private:
  /// Elements of this rank's output and where they come from; a reduction's `sender` is all ranks.
  struct Segment {
    std::size_t at;
    int sender;
    std::size_t index, count;  // in the sender's input
  };

  bool sends() const;
  bool receives() const;
  std::size_t blocks_sent() const;
  std::size_t blocks_received() const;
  std::size_t pair_count(int sender, int receiver) const;
  /// Where the block for `receiver` begins in an all_to_all_v's input.
  std::size_t displacement(int sender, int receiver) const;
  std::vector<Segment> segments() const;
  pkcommResult_t call();
  pkcommResult_t all_to_all_v();
  pkcommResult_t send_and_receive();
  bool fail(const std::string& what);
  /// Bits of an element of a rank's input.
  std::uint64_t input_bits(std::uint64_t round, int rank, std::size_t element) const;
  /// Index of the first wrong element of a segment, or -1.
  std::ptrdiff_t first_wrong(std::uint64_t round, const Segment& segment, const std::byte* got) const;

  const std::uint64_t seed_, call_;
  Rank self_;
  const CallPlan plan_;
  const std::size_t element_;
  std::optional<Memory> send_, recv_;
  Memory *input_ = nullptr, *output_ = nullptr;
  std::size_t input_byte_ = 0, output_byte_ = 0;  // where the call's buffers begin in them
};

}  // namespace pkcomm::test
