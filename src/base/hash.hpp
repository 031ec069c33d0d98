// Hashes to compare between ranks: whether they decide alike, whether they call alike. Equal on every machine and build,
// which std::hash is not; not against an attacker.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pkcomm {

/// Folds a word into a hash: a multiply and a shift of the product's high half, by the odd constant of Knuth's
/// multiplicative hashing (2^64 / golden ratio).
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 32;
}

/// A running hash of numbers and texts.
class Hash {
 public:
  void add(std::integral auto number) noexcept { value_ = mix(value_, static_cast<std::uint64_t>(number)); }
  /// With its length, so that neighbours cannot trade characters.
  void add_text(std::string_view text) noexcept {
    add(text.size());
    while (!text.empty()) {
      std::uint64_t word = 0;
      const std::size_t bytes = std::min(text.size(), sizeof word);
      std::memcpy(&word, text.data(), bytes);
      add(word);
      text.remove_prefix(bytes);
    }
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 1;  // not 0, which a first 0 would not change
};

}  // namespace pkcomm
