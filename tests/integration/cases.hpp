// What the cases share: the algorithms to force, a short deadline, and memory of a rank between guard bytes, private or
// symmetric.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/elements.hpp"
#include "support/world.hpp"

namespace pkcomm::test {

/// All that can be forced on the host platform; empty leaves the choice to the dispatcher.
inline constexpr const char* kAlgorithms[] = {"",           "one_shot_ll", "two_shot_ll",      "direct_ldst",
                                              "direct_tma", "copy_engine", "multimem_emulated"};

/// One variable set for as long as it lives.
inline Environment variable(const std::string& name, const std::string& value) {
  return Environment(std::map<std::string, std::string>{{name, value}});
}

/// Communicators made while it lives use `algorithm` wherever that is legal.
inline Environment forced(const std::string& algorithm) {
  return algorithm.empty() ? Environment(std::map<std::string, std::string>{})
                           : variable("PKCOMM_ALGORITHM", algorithm);
}

/// For cases in which somebody is waited for in vain.
inline constexpr std::int64_t kShortMs = 5000;
inline pkcommConfig_t short_config(std::int64_t timeout_ms = kShortMs) {
  pkcommConfig_t config = limited_config();
  config.timeout_ms = timeout_ms;
  return config;
}

/// Memory of one rank with guard bytes on both sides, aligned to `element` bytes and no more. Symmetric memory is freed
/// with the communicator, so a rank that makes one makes as many as the others, in their order.
class Memory {
 public:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kPoison{0xA5};

  Memory(Rank& self, bool symmetric, std::size_t bytes, std::size_t element)
      : bytes_(bytes), before_(kGuard + element) {
    whole_ = bytes + 2 * before_;
    void* at = nullptr;
    if (symmetric) {
      if (!self.ok(pkcommHeapAlloc(self.comm, whole_, &at), "heap") || at == nullptr) symmetric = false;
    }
    if (!symmetric) {
      own_.resize(whole_);
      at = own_.data();
    }
    begin_ = static_cast<std::byte*>(at);
    std::memset(begin_, static_cast<int>(kPoison), whole_);
  }

  std::byte* data() { return begin_ + before_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  std::size_t size() const { return bytes_; }
  void fill(std::byte value) { std::memset(data(), static_cast<int>(value), bytes_); }
  /// The first `bytes` bytes may have any value, everything else is as it was made.
  bool guards_intact(std::size_t bytes) const {
    for (std::size_t i = 0; i < whole_; ++i) {
      if ((i < before_ || i >= before_ + bytes) && begin_[i] != kPoison) return false;
    }
    return true;
  }
  bool guards_intact() const { return guards_intact(bytes_); }

 private:
  std::size_t bytes_, before_, whole_ = 0;
  std::vector<std::byte> own_;
  std::byte* begin_ = nullptr;
};

/// Stores `count` equal elements, given by their bits.
inline void fill_bits(std::byte* at, pkcommDataType_t type, std::uint64_t bits, std::size_t count) {
  const std::size_t element = bytes_of(type);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(at + i * element, &bits, element);
}
/// Index of the first element with other bits, or -1.
inline std::ptrdiff_t first_other(const std::byte* at, pkcommDataType_t type, std::uint64_t bits,
                                  std::size_t count) {
  const std::size_t element = bytes_of(type);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(at + i * element, &bits, element) != 0) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}
inline std::uint64_t bits_at(const std::byte* at, pkcommDataType_t type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, bytes_of(type));
  return bits;
}

/// all_reduce of `count` elements, rank r giving the bits inputs[r]; every rank must get `wanted` everywhere.
inline void check_all_reduce(Rank& self, bool symmetric, pkcommDataType_t type, pkcommRedOp_t op,
                             std::size_t count, const std::vector<std::uint64_t>& inputs,
                             std::uint64_t wanted, const std::string& what) {
  const std::size_t element = bytes_of(type);
  Memory send(self, symmetric, count * element, element), recv(self, symmetric, count * element, element);
  fill_bits(send.data(), type, inputs[static_cast<std::size_t>(self.rank)], count);
  if (!self.ok(pkcommAllReduce(send.data(), recv.data(), count, type, op, self.comm, self.stream), what))
    return;
  if (!self.synchronize(what)) return;
  const std::ptrdiff_t wrong = first_other(recv.data(), type, wanted, count);
  if (wrong >= 0) {
    self.fail(what + ": element " + std::to_string(wrong) + " of " + std::to_string(count) + " has bits " +
              std::to_string(bits_at(recv.data() + static_cast<std::size_t>(wrong) * element, type)) +
              " instead of " + std::to_string(wanted));
  }
  self.expect(recv.guards_intact(), what + ": wrote outside the output");
}

}  // namespace pkcomm::test
