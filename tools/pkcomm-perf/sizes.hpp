// Sizes as people write them, and the row of sizes that a sweep visits. Every option that takes bytes is read
// by parse_size, so that a suffix means the same everywhere, and nothing behind a number is ever dropped in
// silence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "result.hpp"

namespace pkcomm::perf {

/// The most bytes that an option accepts: what a signed 64-bit offset can address.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{std::numeric_limits<std::int64_t>::max()};

/// Bytes of `text`: decimal digits, at most one point with up to six digits behind it, and at most one suffix
/// out of K M G T (powers of 1024, either case). The result must be a whole number of bytes.
inline Result<std::size_t> parse_size(std::string_view text) {
  const auto fail = [&](const std::string& why) {
    return Error{"'" + std::string(text) + "' is no size: " + why};
  };
  const std::string form =
      "expected a number with an optional K, M, G or T (powers of 1024), such as 64K or 1.5M";
  constexpr std::size_t kFractionDigits = 6;  // 10^6 * 2^40 fits into 64 bits

  std::string_view rest = text;
  const auto take_digits = [&rest] {
    std::size_t n = 0;
    while (n < rest.size() && rest[n] >= '0' && rest[n] <= '9') ++n;
    const std::string_view digits = rest.substr(0, n);
    rest.remove_prefix(n);
    return digits;
  };
  const std::string_view whole_digits = take_digits();
  if (whole_digits.empty()) return fail(form);
  std::string_view fraction_digits;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction_digits = take_digits();
    if (fraction_digits.empty()) return fail(form);
    while (!fraction_digits.empty() && fraction_digits.back() == '0') fraction_digits.remove_suffix(1);
    if (fraction_digits.size() > kFractionDigits) return fail("at most six digits may follow the point");
  }
  std::uint64_t unit = 1;
  if (!rest.empty()) {
    constexpr std::string_view kSuffixes = "KkMmGgTt";
    const std::size_t at = kSuffixes.find(rest.front());
    if (at == std::string_view::npos || rest.size() != 1) return fail(form);
    unit = std::uint64_t{1} << (10 * (at / 2 + 1));
  }

  const std::string limit = "the limit is " + std::to_string(kMostBytes) + " bytes";
  std::uint64_t whole = 0;
  for (const char digit : whole_digits) {
    if (__builtin_mul_overflow(whole, std::uint64_t{10}, &whole) ||
        __builtin_add_overflow(whole, static_cast<std::uint64_t>(digit - '0'), &whole)) {
      return fail(limit);
    }
  }
  std::uint64_t numerator = 0;
  std::uint64_t denominator = 1;
  for (const char digit : fraction_digits) {
    numerator = numerator * 10 + static_cast<std::uint64_t>(digit - '0');
    denominator *= 10;
  }
  if (numerator * unit % denominator != 0) return fail("it is not a whole number of bytes");
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(whole, unit, &bytes) ||
      __builtin_add_overflow(bytes, numerator * unit / denominator, &bytes) || bytes > kMostBytes) {
    return fail(limit);
  }
  return static_cast<std::size_t>(bytes);
}

/// The sizes least, ..., most: times `factor` where that is 2 or more, else plus `step`.
struct SizeSweep {
  std::size_t least = 0;
  std::size_t most = 0;
  std::size_t step = 0;
  std::size_t factor = 0;

  /// The size behind `size`, or none.
  std::optional<std::size_t> after(std::size_t size) const {
    std::size_t next = 0;
    const bool overflow =
        factor > 1 ? __builtin_mul_overflow(size, factor, &next) : __builtin_add_overflow(size, step, &next);
    if (overflow || next > most || next <= size) return std::nullopt;
    return next;
  }

  /// Why this is no sweep, or nothing.
  std::optional<std::string> fault() const {
    if (least > most) {
      return "the least size (-b) is " + std::to_string(least) + " bytes, more than the greatest (-e), " +
             std::to_string(most);
    }
    if (least < most && factor <= 1 && step == 0) return "the step (-i) is 0; give one, or a factor (-f)";
    if (least < most && factor > 1 && least == 0) return "a factor (-f) leads nowhere from 0 bytes (-b)";
    return std::nullopt;
  }
};

/// "64 KiB", for prose.
inline std::string in_words(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  double amount = static_cast<double>(bytes);
  while (amount >= 1024 && unit + 1 < std::size(kUnits)) {
    amount /= 1024;
    ++unit;
  }
  std::string text = std::to_string(amount);  // always with a point and six digits
  text.erase(text.find('.') + (amount < 10 && unit > 0 ? 2 : 0));
  if (text.size() > 2 && text.ends_with(".0")) text.resize(text.size() - 2);
  return text + " " + kUnits[unit];
}

}  // namespace pkcomm::perf
