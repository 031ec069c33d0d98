// What ranks send, and what must therefore arrive. An input depends on rank, position and seed; the expected
// result of a reduction follows from the inputs by exact arithmetic and one rounding, so a check needs no
// tolerance.
//
// - Moved data are arbitrary bits, NaNs and all: whoever moves bytes must not look at them.
// - Integers that are reduced are arbitrary too (odd for products, which would else soon be 0): wrapping is
//   part of the contract.
// - Floats that are summed are integers small enough for every partial sum to be exact in the arithmetic
//   type; products are of signed powers of two. So any order of evaluation gives the same number, rounded
//   once.
//
// A pattern repeats after kPeriod positions, a prime, so that tables stay small and no block size is a
// multiple of it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rounding.hpp"
#include "types.hpp"

namespace pkcomm::perf {

inline constexpr std::size_t kPeriod = 16381;

struct PatternSpec {
  pkcommDataType_t type = pkcommFloat32;
  bool reduced = false;  // numbers that `op` will reduce; otherwise bits that are only moved
  Op op = Op::kSum;
  int nranks = 1;
  std::uint64_t seed = 0;
};

/// A good mixing of 64 bits (the finaliser of SplitMix64).
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

inline std::uint64_t hash_of(const PatternSpec& spec, int rank, std::size_t position) {
  return mix(mix(spec.seed * 1024 + static_cast<std::uint64_t>(rank)) ^ (position % kPeriod));
}

/// The largest integer magnitude that a summand or an extremum may have: exactly representable in the type,
/// and for sums small enough that nranks of them, doubled, stay exact in the arithmetic type.
inline std::int64_t number_limit(const PatternSpec& spec) {
  switch (spec.type) {
    case pkcommFloat8e5m2:
      return 8;
    case pkcommFloat8e4m3:
      return 16;
    case pkcommBfloat16:
    case pkcommFloat16:
      return 256;
    case pkcommFloat32:
      return (std::int64_t{1} << 22) / spec.nranks;
    default:
      return (std::int64_t{1} << 51) / spec.nranks;
  }
}

/// The float that `rank` contributes at `position`; exact in the type.
inline double input_number(const PatternSpec& spec, int rank, std::size_t position) {
  const std::uint64_t hash = hash_of(spec, rank, position);
  if (spec.op != Op::kProd) {
    const std::int64_t limit = number_limit(spec);
    return static_cast<double>(static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(2 * limit + 1)) -
                               limit);
  }
  // About four ranks contribute a factor of 2 and four of 1/2, whatever nranks is: products stay in range.
  const std::uint64_t odds = static_cast<std::uint64_t>(std::max(4, spec.nranks / 4));
  const std::uint64_t draw = (hash >> 1) % odds;
  const double magnitude = draw == 0 ? 2.0 : draw == 1 ? 0.5 : 1.0;
  return (hash & 1) != 0 ? -magnitude : magnitude;
}

/// The scalar of a pre-multiplied sum; differs between ranks.
inline double scalar_number(const PatternSpec& spec, int rank) {
  constexpr double kFloats[] = {1, 2, 0.5};
  return describe(spec.type).is_float ? kFloats[rank % 3] : 1 + rank % 3;
}

inline std::uint64_t scalar_bits(const PatternSpec& spec, int rank) {
  const double scalar = scalar_number(spec, rank);
  return describe(spec.type).is_float ? round_to_bits(scalar, spec.type) : static_cast<std::uint64_t>(scalar);
}

/// The element that `rank` sends at `position`, in the low bits.
inline std::uint64_t input_bits(const PatternSpec& spec, int rank, std::size_t position) {
  if (spec.reduced && describe(spec.type).is_float) {
    return round_to_bits(input_number(spec, rank, position), spec.type);
  }
  const std::uint64_t hash = hash_of(spec, rank, position);
  const std::uint64_t bits = spec.reduced && spec.op == Op::kProd ? hash | 1 : hash;
  const std::size_t bytes = describe(spec.type).bytes;
  return bytes == 8 ? bits : bits & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

inline std::uint64_t reduced_float_bits(const PatternSpec& spec, std::size_t position) {
  double result = input_number(spec, 0, position) * (spec.op == Op::kMulSum ? scalar_number(spec, 0) : 1);
  for (int rank = 1; rank < spec.nranks; ++rank) {
    const double x = input_number(spec, rank, position);
    switch (spec.op) {
      case Op::kSum:
      case Op::kAvg:
        result += x;
        break;
      case Op::kMulSum:
        result += x * scalar_number(spec, rank);
        break;
      case Op::kProd:
        result *= x;
        break;
      case Op::kMax:
        result = std::max(result, x);
        break;
      case Op::kMin:
        result = std::min(result, x);
        break;
    }
  }
  if (spec.op == Op::kAvg) {
    // The quotient is rounded to the arithmetic type, then to the element type.
    result = spec.type == pkcommFloat64
                 ? result / spec.nranks
                 : static_cast<double>(static_cast<float>(result) / static_cast<float>(spec.nranks));
  }
  return round_to_bits(result, spec.type);
}

inline std::uint64_t reduced_integer_bits(const PatternSpec& spec, std::size_t position) {
  const DataType& type = describe(spec.type);
  const int unused_bits = 64 - 8 * static_cast<int>(type.bytes);
  // The value of the low bits of a word: what the type holds after wrapping.
  const auto as_signed = [&](std::uint64_t word) {
    return static_cast<std::int64_t>(word << unused_bits) >> unused_bits;
  };
  const auto as_unsigned = [&](std::uint64_t word) { return word << unused_bits >> unused_bits; };
  const auto less = [&](std::uint64_t a, std::uint64_t b) {
    return type.is_signed ? as_signed(a) < as_signed(b) : as_unsigned(a) < as_unsigned(b);
  };
  const auto scaled = [&](int rank) {
    const std::uint64_t x = input_bits(spec, rank, position);
    return spec.op == Op::kMulSum ? x * scalar_bits(spec, rank) : x;
  };
  std::uint64_t result = scaled(0);
  for (int rank = 1; rank < spec.nranks; ++rank) {
    const std::uint64_t x = scaled(rank);
    switch (spec.op) {
      case Op::kSum:
      case Op::kAvg:
      case Op::kMulSum:
        result += x;
        break;
      case Op::kProd:
        result *= x;
        break;
      case Op::kMax:
        result = less(result, x) ? x : result;
        break;
      case Op::kMin:
        result = less(x, result) ? x : result;
        break;
    }
  }
  if (spec.op == Op::kAvg) {
    result = type.is_signed ? static_cast<std::uint64_t>(as_signed(result) / spec.nranks)
                            : as_unsigned(result) / static_cast<std::uint64_t>(spec.nranks);
  }
  return as_unsigned(result);
}

/// The element that a reduction over all ranks must give at `position`.
inline std::uint64_t reduced_bits(const PatternSpec& spec, std::size_t position) {
  return describe(spec.type).is_float ? reduced_float_bits(spec, position)
                                      : reduced_integer_bits(spec, position);
}

/// One period of a pattern, or less where fewer elements are needed, as it lies in memory.
class PatternTable {
 public:
  /// `elements`: no position beyond it will be asked for.
  static PatternTable of_input(const PatternSpec& spec, int rank, std::size_t elements) {
    return PatternTable(spec.type, elements, [&](std::size_t i) { return input_bits(spec, rank, i); });
  }
  static PatternTable of_result(const PatternSpec& spec, std::size_t elements) {
    return PatternTable(spec.type, elements, [&](std::size_t i) { return reduced_bits(spec, i); });
  }

  /// Writes `count` elements from position `first` on.
  void fill(std::byte* out, std::size_t first, std::size_t count) const {
    for_runs(first, count, [&](const std::byte* pattern, std::size_t bytes) {
      std::memcpy(out, pattern, bytes);
      out += bytes;
    });
  }

  /// How many of the `count` elements at `data` differ from the pattern from position `first` on.
  std::size_t differences(const std::byte* data, std::size_t first, std::size_t count) const {
    std::size_t wrong = 0;
    for_runs(first, count, [&](const std::byte* pattern, std::size_t bytes) {
      if (std::memcmp(data, pattern, bytes) != 0) {
        for (std::size_t at = 0; at < bytes; at += element_) {
          wrong += std::memcmp(data + at, pattern + at, element_) != 0 ? 1 : 0;
        }
      }
      data += bytes;
    });
    return wrong;
  }

 private:
  template <class Bits>
  PatternTable(pkcommDataType_t type, std::size_t elements, Bits bits_at) : element_(describe(type).bytes) {
    static_assert(std::endian::native == std::endian::little);
    const std::size_t entries = std::min(elements, kPeriod);
    bytes_.resize(entries * element_);
    for (std::size_t i = 0; i < entries; ++i) {
      const std::uint64_t bits = bits_at(i);
      std::memcpy(bytes_.data() + i * element_, &bits, element_);
    }
  }

  template <class Body>
  void for_runs(std::size_t first, std::size_t count, Body body) const {
    std::size_t at = first % kPeriod;
    while (count > 0) {
      const std::size_t run = std::min(count, kPeriod - at);
      body(bytes_.data() + at * element_, run * element_);
      count -= run;
      at = 0;
    }
  }

  std::size_t element_;
  std::vector<std::byte> bytes_;
};

}  // namespace pkcomm::perf
