// 128 random bits from the kernel: they name a communicator or a process where a number could be guessed or used
// twice.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace pkcomm::bootstrap {

struct Nonce {
  std::array<std::uint64_t, 2> words{};
  auto operator<=>(const Nonce&) const = default;
};

/// Never fails: getrandom(2), which every supported kernel has, is only waited for early at boot.
Nonce random_nonce();

/// FNV-1a over `bytes` bytes: finds damage, does not resist an attacker (the nonce does).
std::uint64_t checksum(const void* data, std::size_t bytes);

}  // namespace pkcomm::bootstrap
