// What the cases share: algorithms to force, a short deadline, and reductions given by their bits.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/elements.hpp"
#include "support/memory.hpp"

namespace pkcomm::test {

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
inline void check_all_reduce(Rank& self, Place place, pkcommDataType_t type, pkcommRedOp_t op,
                             std::size_t count, const std::vector<std::uint64_t>& inputs,
                             std::uint64_t wanted, const std::string& what) {
  const std::size_t element = bytes_of(type);
  Memory send(self, place, count * element, element), recv(self, place, count * element, element);
  fill_bits(send.host(), type, inputs[static_cast<std::size_t>(self.rank)], count);
  send.upload();
  if (!self.ok(pkcommAllReduce(send.at(), recv.at(), count, type, op, self.comm, self.stream), what)) return;
  recv.download();
  if (!self.synchronize(what)) return;
  const std::ptrdiff_t wrong = first_other(recv.host(), type, wanted, count);
  if (wrong >= 0) {
    self.fail(what + ": element " + std::to_string(wrong) + " of " + std::to_string(count) + " has bits " +
              std::to_string(bits_at(recv.host() + static_cast<std::size_t>(wrong) * element, type)) +
              " instead of " + std::to_string(wanted));
  }
  self.expect(recv.guards_intact(), what + ": wrote outside the output");
}

}  // namespace pkcomm::test
