// Folds a word into a hash. For comparing what ranks agreed on, not against an attacker: a multiply and a shift of the
// product's high half, by the odd constant of Knuth's multiplicative hashing (2^64 / golden ratio).
#pragma once

#include <cstdint>

namespace pkcomm {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 32;
}

}  // namespace pkcomm
