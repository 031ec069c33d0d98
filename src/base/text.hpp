// Numbers and names in text: strict readers that take the whole string or refuse it with a reason, their inverse, and
// the nearest name to a misspelt one. Locale plays no part.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace pkcomm {

/// Decimal digits with an optional minus; no spaces, no plus, no trailing text.
Result<std::int64_t> parse_integer(std::string_view text);

/// A size such as 4096, 64K, 1.5M, 2G or 1T: suffixes are powers of 1024 in either case, a fraction must come out as
/// whole bytes. Anything else, a sign or "KB" included, is refused.
Result<std::uint64_t> parse_bytes(std::string_view text);

/// Seconds such as 30 or 0.25, to the millisecond.
Result<std::chrono::milliseconds> parse_seconds(std::string_view text);

/// The shortest text that parse_bytes() reads back as `bytes`: 64M, 1.5K, 1000000.
std::string format_bytes(std::uint64_t bytes);

/// Fills a field of the C API: cut where it is too long, always terminated.
template <std::size_t kBytes>
void copy_text(char (&to)[kBytes], std::string_view text) {
  const std::size_t bytes = std::min(text.size(), kBytes - 1);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
}

std::string lower_case(std::string_view text);
/// Without blanks and tabs at both ends.
std::string_view trim(std::string_view text);
/// The parts between separators, trimmed; an empty text has one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(std::span<const std::string_view> words, std::string_view separator);

/// The candidate most like `word`: few edits, and the same beginning counts for it, since names are cut short more
/// often than mistyped. Empty if there are no candidates.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace pkcomm
