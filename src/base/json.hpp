// Reading JSON: text to a tree of values, each of which knows where it stands, so that a wrong file is answered with
// "host.json: curves[3].threads is -1, allowed 1..1024" and not with a guess. Strict: one value, no comments, no
// duplicate keys, bounded depth. The parser itself is a library that only json.cpp includes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.hpp"

namespace pkcomm::json {

class Value {
 public:
  enum class Kind : std::uint8_t { kNull, kBoolean, kInteger, kReal, kText, kArray, kObject };

  Kind kind() const noexcept { return kind_; }
  /// "h200.json: curves[3].threads"
  const std::string& where() const noexcept { return where_; }

  /// Typed access; the failure (pkcommInvalidArgument) says where, what is there and what is allowed.
  Result<bool> boolean() const;
  Result<std::int64_t> integer(std::int64_t least, std::int64_t most) const;
  Result<std::string> text() const;
  Result<std::span<const Value>> items() const;

  /// The member `key` of an object; null if there is none, or if this is no object.
  const Value* find(std::string_view key) const noexcept;
  Result<const Value*> member(std::string_view key) const;
  /// Members that may be absent.
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback, std::int64_t least,
                                  std::int64_t most) const;
  Result<std::string> text_or(std::string_view key, std::string_view fallback) const;
  /// Fails if this is no object, or has a member that is not among `keys`; names the nearest.
  Status only(std::initializer_list<std::string_view> keys) const;

  /// A failure about this value.
  Status refuse(std::string_view why) const;

 private:
  friend class TreeBuilder;
  std::string describe() const;

  Kind kind_ = Kind::kNull;
  bool boolean_ = false;
  std::int64_t integer_ = 0;
  std::string text_;  // of a text; of a number that is no int64, as it was written
  std::vector<Value> items_;
  std::vector<std::pair<std::string, Value>> members_;
  std::string where_;
};

/// `source` names the text in messages. A malformed text is pkcommInvalidArgument with line and column.
Result<Value> parse(std::string_view text, std::string_view source);

/// Reads a file of at most 1 MiB.
Result<Value> load(const std::string& path);
/// The same, unparsed.
Result<std::string> read_file(const std::string& path);

}  // namespace pkcomm::json
