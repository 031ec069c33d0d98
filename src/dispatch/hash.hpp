// A running hash of numbers and texts, to compare between ranks whether they will decide alike. FNV-1a with 64 bits:
// equal on every machine and build, which std::hash is not.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

namespace pkcomm::dispatch {

class Hash {
 public:
  void add(std::integral auto number) noexcept {
    auto bits = static_cast<std::uint64_t>(number);
    for (int i = 0; i < 8; ++i, bits >>= 8) add_byte(static_cast<unsigned char>(bits));
  }
  /// With its length, so that neighbours cannot trade characters.
  void add_text(std::string_view text) noexcept {
    add(text.size());
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  void add_byte(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 0x100000001b3U; }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace pkcomm::dispatch
