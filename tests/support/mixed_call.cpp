// The reference knows a reduction as a fold over the ranks' inputs, and everything else by where each element comes from.
#include "support/mixed_call.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>

#include "numerics/dispatch_type.hpp"
#include "support/elements.hpp"
#include "support/numerics_reference.hpp"

namespace pkcomm::test {
namespace {

enum Salt : std::uint64_t {
  kKind,
  kType,
  kOp,
  kSize,
  kSmaller,
  kCount,
  kRoot,
  kInPlace,
  kPlace,
  kPairs,
  kData = 1u << 20
};

/// A number of the format: any sign and mantissa, few exponents, and now and then what is special.
std::uint64_t float_of(std::uint64_t word, int exponent_bits, int mantissa_bits) {
  const std::uint64_t all_ones = (std::uint64_t{1} << exponent_bits) - 1, bias = all_ones / 2;
  std::uint64_t mantissa = word & ((std::uint64_t{1} << mantissa_bits) - 1);
  std::uint64_t exponent = bias - 3 + (word >> 52) % 7;
  switch (word >> 56 & 31) {
    case 0:
      mantissa = exponent = 0;
      break;
    case 1:
      exponent = 0;
      break;
    case 2:
      exponent = all_ones, mantissa = 0;
      break;
    case 3:
      exponent = all_ones;
      break;
    default:
      break;
  }
  return (word >> 63) << (exponent_bits + mantissa_bits) | exponent << mantissa_bits | mantissa;
}

std::uint64_t number_of(std::uint64_t word, pkcommDataType_t type) {
  switch (type) {
    case pkcommFloat16:
      return float_of(word, 5, 10);
    case pkcommBfloat16:
      return float_of(word, 8, 7);
    case pkcommFloat32:
      return float_of(word, 8, 23);
    case pkcommFloat64:
      return float_of(word, 11, 52);
    case pkcommFloat8e4m3:
      return float_of(word, 4, 3);
    case pkcommFloat8e5m2:
      return float_of(word, 5, 2);
    default:
      return word;
  }
}

}  // namespace

std::uint64_t random_word(std::uint64_t seed, std::uint64_t call, std::uint64_t salt) {
  std::uint64_t word = 0;
  for (const std::uint64_t next : {seed, call, salt}) {  // the finalizer of splitmix64 for each
    word += next + 0x9e3779b97f4a7c15ull;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    word ^= word >> 31;
  }
  return word;
}

CallPlan CallPlan::make(std::uint64_t seed, std::uint64_t call, int nranks) {
  const auto pick = [&](Salt salt, std::size_t below) {
    return static_cast<std::size_t>(random_word(seed, call, salt) % below);
  };
  CallPlan plan{};
  plan.kind = static_cast<pkcommCollective_t>(pick(kKind, PKCOMM_COLLECTIVES));
  plan.type = kTypes[pick(kType, std::size(kTypes))];
  plan.op = kOps[pick(kOp, std::size(kOps))];
  // Of every magnitude, the small ones oftener.
  const std::size_t most = MixedCall::kMostBytes / 8 / static_cast<std::size_t>(nranks);
  const std::size_t magnitude = std::min(pick(kSize, 18), pick(kSmaller, 18));
  plan.count = std::min(pick(kCount, std::size_t{1} << magnitude), most);
  plan.root = static_cast<int>(pick(kRoot, static_cast<std::size_t>(nranks)));
  const std::vector<Place> all = places();
  plan.place = all[pick(kPlace, all.size())];
  switch (plan.kind) {
    case pkcommCollAllReduce:
    case pkcommCollReduce:
    case pkcommCollReduceScatter:
    case pkcommCollAllGather:
    case pkcommCollBroadcast:
      plan.in_place = pick(kInPlace, 3) == 0;
      break;
    case pkcommCollGather:
    case pkcommCollScatter:
      // In place, a root's window would lie at another offset than the others'.
      plan.in_place = plan.place != Place::kSymmetric && pick(kInPlace, 3) == 0;
      break;
    default:
      break;
  }
  return plan;
}

bool CallPlan::reduces() const {
  return kind == pkcommCollAllReduce || kind == pkcommCollReduce || kind == pkcommCollReduceScatter;
}

std::string CallPlan::describe() const {
  constexpr const char* kNames[] = {"all_reduce",     "reduce",     "broadcast",    "all_gather",
                                    "reduce_scatter", "all_to_all", "all_to_all_v", "gather",
                                    "scatter",        "send/recv",  "barrier"};
  std::ostringstream text;
  text << kNames[kind] << " type " << type << " op " << op << " count " << count << " root " << root
       << (in_place ? " in place" : "") << " place " << static_cast<int>(place);
  return text.str();
}

MixedCall::Heap MixedCall::Heap::allocate(Rank& self) {
  void *send = nullptr, *recv = nullptr;
  self.ok(pkcommHeapAlloc(self.comm, Memory::with_guards(kMostBytes), &send), "heap");
  self.ok(pkcommHeapAlloc(self.comm, Memory::with_guards(kMostBytes), &recv), "heap");
  return {static_cast<std::byte*>(send), static_cast<std::byte*>(recv)};
}

MixedCall::MixedCall(std::uint64_t seed, std::uint64_t call, const Rank& self, const Heap& heap)
    : seed_(seed),
      call_(call),
      self_(self),
      plan_(CallPlan::make(seed, call, self.nranks)),
      element_(bytes_of(plan_.type)) {
  const std::size_t send_bytes = blocks_sent() * plan_.count * element_,
                    recv_bytes = blocks_received() * plan_.count * element_;
  if (plan_.place == Place::kSymmetric && heap.send != nullptr) {
    send_.emplace(self_, heap.send, send_bytes);
    recv_.emplace(self_, heap.recv, recv_bytes);
  } else {
    send_.emplace(self_, plan_.place, send_bytes, element_);
    recv_.emplace(self_, plan_.place, recv_bytes, element_);
  }
  input_ = &*send_;
  output_ = &*recv_;
  if (!plan_.in_place || !sends() || !receives()) return;
  const std::size_t own_block = static_cast<std::size_t>(self_.rank) * plan_.count * element_;
  switch (plan_.kind) {
    case pkcommCollAllGather:
    case pkcommCollGather:
      input_ = output_, input_byte_ = own_block;
      break;
    case pkcommCollBroadcast:  // the peers' part in it is the output
      input_ = output_;
      break;
    case pkcommCollReduceScatter:
    case pkcommCollScatter:
      output_ = input_, output_byte_ = own_block;
      break;
    default:
      output_ = input_;
  }
}

bool MixedCall::sends() const {
  return self_.rank == plan_.root || (plan_.kind != pkcommCollBroadcast && plan_.kind != pkcommCollScatter);
}
bool MixedCall::receives() const {
  return self_.rank == plan_.root || (plan_.kind != pkcommCollReduce && plan_.kind != pkcommCollGather);
}
std::size_t MixedCall::blocks_sent() const {
  const bool many = plan_.kind == pkcommCollReduceScatter || plan_.kind == pkcommCollAllToAll ||
                    plan_.kind == pkcommCollAllToAllV || plan_.kind == pkcommCollScatter;
  return many ? static_cast<std::size_t>(self_.nranks) : 1;
}
std::size_t MixedCall::blocks_received() const {
  const bool many = plan_.kind == pkcommCollAllGather || plan_.kind == pkcommCollAllToAll ||
                    plan_.kind == pkcommCollAllToAllV || plan_.kind == pkcommCollGather;
  return many ? static_cast<std::size_t>(self_.nranks) : 1;
}

std::size_t MixedCall::pair_count(int sender, int receiver) const {
  const auto pair = static_cast<std::uint64_t>(sender * self_.nranks + receiver);
  return static_cast<std::size_t>(random_word(seed_, call_, kPairs + pair) % (plan_.count + 1));
}
std::size_t MixedCall::displacement(int sender, int receiver) const {
  std::size_t before = 0;
  for (int other = 0; other < receiver; ++other) before += pair_count(sender, other);
  return before;
}

std::vector<MixedCall::Segment> MixedCall::segments() const {
  const auto me = static_cast<std::size_t>(self_.rank);
  std::vector<Segment> all;
  const auto from_each = [&](std::size_t index) {
    for (int sender = 0; sender < self_.nranks; ++sender)
      all.push_back({static_cast<std::size_t>(sender) * plan_.count, sender, index, plan_.count});
  };
  if (!receives()) return all;
  switch (plan_.kind) {
    case pkcommCollAllReduce:
    case pkcommCollReduce:
    case pkcommCollBroadcast:
      all.push_back({0, plan_.root, 0, plan_.count});
      break;
    case pkcommCollReduceScatter:
    case pkcommCollScatter:
      all.push_back({0, plan_.root, me * plan_.count, plan_.count});
      break;
    case pkcommCollAllGather:
    case pkcommCollGather:
      from_each(0);
      break;
    case pkcommCollAllToAll:
      from_each(me * plan_.count);
      break;
    case pkcommCollAllToAllV: {
      std::size_t at = 0;
      for (int sender = 0; sender < self_.nranks; ++sender) {
        const std::size_t count = pair_count(sender, self_.rank);
        all.push_back({at, sender, displacement(sender, self_.rank), count});
        at += count;
      }
      break;
    }
    case pkcommCollSendRecv:
      all.push_back({0, (self_.rank + self_.nranks - plan_.root) % self_.nranks, 0, plan_.count});
      break;
    case pkcommCollBarrier:
      break;
  }
  return all;
}

std::uint64_t MixedCall::input_bits(std::uint64_t round, int rank, std::size_t element) const {
  const auto salt =
      kData * (round * static_cast<std::uint64_t>(self_.nranks) + static_cast<std::uint64_t>(rank) + 1);
  const std::uint64_t word = random_word(seed_, call_, salt + element);
  return plan_.reduces() ? number_of(word, plan_.type) : word;
}

void MixedCall::write(std::uint64_t round) {
  std::memset(recv_->host(), static_cast<int>(Memory::kPoison), recv_->size());
  std::memset(send_->host(), static_cast<int>(Memory::kPoison), send_->size());
  if (!sends()) return;
  std::byte* const to = input_->host() + input_byte_;
  for (std::size_t i = 0; i < blocks_sent() * plan_.count; ++i) {
    const std::uint64_t bits = input_bits(round, self_.rank, i);
    std::memcpy(to + i * element_, &bits, element_);  // little endian
  }
}

bool MixedCall::enqueue() {
  send_->upload();
  recv_->upload();
  const bool called = self_.ok(call(), plan_.describe());
  send_->download();
  recv_->download();
  return called;
}

pkcommResult_t MixedCall::call() {
  const void* const in = sends() ? input_->at(input_byte_) : nullptr;
  void* const out = receives() ? output_->at(output_byte_) : nullptr;
  const auto& [kind, type, op, count, root, in_place, place] = plan_;
  switch (kind) {
    case pkcommCollAllReduce:
      return pkcommAllReduce(in, out, count, type, op, self_.comm, self_.stream);
    case pkcommCollReduce:
      return pkcommReduce(in, out, count, type, op, root, self_.comm, self_.stream);
    case pkcommCollBroadcast:
      return pkcommBroadcast(in, out, count, type, root, self_.comm, self_.stream);
    case pkcommCollAllGather:
      return pkcommAllGather(in, out, count, type, self_.comm, self_.stream);
    case pkcommCollReduceScatter:
      return pkcommReduceScatter(in, out, count, type, op, self_.comm, self_.stream);
    case pkcommCollAllToAll:
      return pkcommAllToAll(in, out, count, type, self_.comm, self_.stream);
    case pkcommCollAllToAllV:
      return all_to_all_v();
    case pkcommCollGather:
      return pkcommGather(in, out, count, type, root, self_.comm, self_.stream);
    case pkcommCollScatter:
      return pkcommScatter(in, out, count, type, root, self_.comm, self_.stream);
    case pkcommCollSendRecv:
      return send_and_receive();
    case pkcommCollBarrier:
      return pkcommBarrier(self_.comm, self_.stream);
  }
  return pkcommInternalError;
}

pkcommResult_t MixedCall::all_to_all_v() {
  std::vector<std::size_t> send_counts, send_displs, recv_counts, recv_displs;
  for (const Segment& segment : segments()) {
    const int peer = segment.sender;
    send_counts.push_back(pair_count(self_.rank, peer));
    send_displs.push_back(displacement(self_.rank, peer));
    recv_counts.push_back(segment.count);
    recv_displs.push_back(segment.at);
  }
  return pkcommAllToAllV(input_->at(), send_counts.data(), send_displs.data(), output_->at(),
                         recv_counts.data(), recv_displs.data(), plan_.type, self_.comm, self_.stream);
}

pkcommResult_t MixedCall::send_and_receive() {
  const int to = (self_.rank + plan_.root) % self_.nranks, from = segments()[0].sender;
  pkcommGroupStart();
  const pkcommResult_t sent = pkcommSend(input_->at(), plan_.count, plan_.type, to, self_.comm, self_.stream);
  const pkcommResult_t received =
      pkcommRecv(output_->at(), plan_.count, plan_.type, from, self_.comm, self_.stream);
  const pkcommResult_t ended = pkcommGroupEnd();
  return sent != pkcommSuccess ? sent : received != pkcommSuccess ? received : ended;
}

bool MixedCall::fail(const std::string& what) {
  self_.fail("seed " + std::to_string(seed_) + ", call " + std::to_string(call_) + ", " + plan_.describe() +
             ": " + what);
  return false;
}

std::ptrdiff_t MixedCall::first_wrong(std::uint64_t round, const Segment& segment,
                                      const std::byte* got) const {
  if (!plan_.reduces()) {
    for (std::size_t i = 0; i < segment.count; ++i) {
      const std::uint64_t bits = input_bits(round, segment.sender, segment.index + i);
      if (std::memcmp(got + i * element_, &bits, element_) != 0) return static_cast<std::ptrdiff_t>(i);
    }
    return -1;
  }
  return numerics::visit_reduction(plan_.type, numerics::reduce_kind(plan_.op), [&]<class T, class Op>() {
    std::vector<T> x(static_cast<std::size_t>(self_.nranks));
    for (std::size_t i = 0; i < segment.count; ++i) {
      for (int rank = 0; rank < self_.nranks; ++rank) {
        const std::uint64_t bits = input_bits(round, rank, segment.index + i);
        std::memcpy(&x[static_cast<std::size_t>(rank)], &bits, sizeof(T));
      }
      T result;
      std::memcpy(&result, got + i * element_, sizeof(T));
      if (!same(result, reduce_one<T, Op>(x, x))) return static_cast<std::ptrdiff_t>(i);
    }
    return std::ptrdiff_t{-1};
  });
}

bool MixedCall::check(std::uint64_t round) {
  if (!send_->guards_intact() || !recv_->guards_intact()) return fail("wrote outside the buffers");
  const std::byte* const got = output_->host() + output_byte_;
  for (const Segment& segment : segments()) {
    const std::ptrdiff_t wrong = first_wrong(round, segment, got + segment.at * element_);
    if (wrong >= 0)
      return fail("round " + std::to_string(round) + ": element " +
                  std::to_string(segment.at + static_cast<std::size_t>(wrong)) + " is wrong");
  }
  return true;
}

}  // namespace pkcomm::test
