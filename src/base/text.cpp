// Readers and writers of base/text.hpp.
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

#include "base/checked.hpp"

namespace pkcomm {
namespace {

constexpr std::string_view kSuffixes = "KMGT";

Status refuse(std::string_view text, std::string_view why) {
  return {pkcommInvalidArgument, "\"" + std::string(text) + "\" " + std::string(why)};
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Why a product of a decimal number and a scale is not to be had.
enum class Decimal { kMalformed, kTooLarge, kNotWhole };

struct Scaled {
  std::uint64_t value = 0;
  std::optional<Decimal> fault;
};

/// "12.5" times `scale`, exactly, in integers.
Scaled scale_decimal(std::string_view text, std::uint64_t scale) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string_view fraction = point == text.npos ? std::string_view("0") : text.substr(point + 1);
  if (!all_digits(whole) || !all_digits(fraction)) return {.fault = Decimal::kMalformed};

  std::uint64_t value = 0;
  if (std::from_chars(whole.data(), whole.data() + whole.size(), value).ec != std::errc()) {
    return {.fault = Decimal::kTooLarge};
  }
  const auto product = checked::multiply(value, scale);
  if (!product) return {.fault = Decimal::kTooLarge};

  // The fraction digit by digit: unit is what 1 in this place is worth, as the ratio scale / 10^place. Dividing out
  // common factors keeps it exact: a place whose worth is no whole number may only hold a digit that makes it one.
  std::uint64_t extra = 0;
  std::uint64_t denominator = 1;
  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  if (fraction.size() > 18) return {.fault = Decimal::kNotWhole};  // 10^18 divides no scale in use
  std::uint64_t digits = 0;
  for (const char c : fraction) {
    digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
    denominator *= 10;
  }
  if (digits != 0) {
    const std::uint64_t common = std::gcd(digits, denominator);
    digits /= common;
    denominator /= common;
    if (scale % denominator != 0) return {.fault = Decimal::kNotWhole};
    extra = digits * (scale / denominator);  // below scale
  }
  const auto sum = checked::add(*product, extra);
  if (!sum) return {.fault = Decimal::kTooLarge};
  return {.value = *sum, .fault = {}};
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return refuse(text, "is too large for 64 bits");
  if (error != std::errc() || end != text.data() + text.size()) return refuse(text, "is not a whole number");
  return value;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  std::string_view number = text;
  std::uint64_t scale = 1;
  if (!text.empty()) {
    const char last = static_cast<char>(text.back() & ~0x20);  // upper case, if it is a letter
    if (const std::size_t power = kSuffixes.find(last); power != kSuffixes.npos && last >= 'A') {
      scale = std::uint64_t{1} << (10 * (power + 1));
      number.remove_suffix(1);
    }
  }
  const Scaled scaled = scale_decimal(number, scale);
  if (!scaled.fault) return scaled.value;
  switch (*scaled.fault) {
    case Decimal::kTooLarge:
      return refuse(text, "is too large for 64 bits");
    case Decimal::kNotWhole:
      return refuse(text, "is not a whole number of bytes");
    case Decimal::kMalformed:
      break;
  }
  return refuse(text, "is not a size (a number, then nothing or one of K, M, G, T)");
}

Result<std::chrono::milliseconds> parse_seconds(std::string_view text) {
  const Scaled scaled = scale_decimal(text, 1000);
  if (scaled.fault == Decimal::kNotWhole) return refuse(text, "is finer than a millisecond");
  if (scaled.fault == Decimal::kMalformed) return refuse(text, "is not a number of seconds");
  if (scaled.fault || scaled.value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return refuse(text, "is too large for 64 bits of milliseconds");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(scaled.value));
}

std::string format_bytes(std::uint64_t bytes) {
  std::string best = std::to_string(bytes);
  for (std::size_t power = 1; power <= kSuffixes.size(); ++power) {
    const std::uint64_t scale = std::uint64_t{1} << (10 * power);
    // Halves and quarters are read at a glance; finer fractions are clearer as a number of the smaller unit.
    const std::uint64_t quarters = bytes / (scale / 4);
    if (bytes == 0 || bytes % (scale / 4) != 0 || quarters < 4) continue;
    constexpr std::array<std::string_view, 4> kFractions = {"", ".25", ".5", ".75"};
    std::string text = std::to_string(quarters / 4);
    text.append(kFractions[quarters % 4]).push_back(kSuffixes[power - 1]);
    if (text.size() <= best.size()) best = std::move(text);
  }
  return best;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(std::span<const std::string_view> words, std::string_view separator) {
  std::string result;
  for (const std::string_view word : words) {
    if (!result.empty()) result.append(separator);
    result.append(word);
  }
  return result;
}

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::int64_t best_score = std::numeric_limits<std::int64_t>::max();
  for (const std::string_view candidate : candidates) {
    // Edit distance, one row at a time: row[j] is the distance of word's first i characters and candidate's first j.
    std::vector<std::int64_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::int64_t diagonal = row[0];
      row[0] = static_cast<std::int64_t>(i);
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::int64_t replaced = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    const auto [in_word, in_candidate] =
        std::mismatch(word.begin(), word.end(), candidate.begin(), candidate.end());
    const std::int64_t score = row.back() - (in_word - word.begin());
    if (score < best_score) {
      best_score = score;
      best = candidate;
    }
  }
  return best;
}

}  // namespace pkcomm
