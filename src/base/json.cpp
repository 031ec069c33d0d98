// The only file that includes the JSON parser. Its event interface is used: it recurses nowhere, whatever the text, and
// lets us keep where each value stands and refuse duplicate keys, which its own tree does not.
#include "base/json.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace pkcomm::json {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

std::string position_text(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == before.npos ? before.size() : before.size() - newline - 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(std::max<std::size_t>(column, 1));
}

}  // namespace

/// Receives the parser's events; a false return stops it.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::string_view source) { root_.where_ = source; }

  bool null() { return place() != nullptr; }
  bool boolean(bool value) {
    return add([&](Value& v) { v.kind_ = Value::Kind::kBoolean, v.boolean_ = value; });
  }
  bool number_integer(std::int64_t value) {
    return add([&](Value& v) { v.kind_ = Value::Kind::kInteger, v.integer_ = value; });
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= INT64_MAX) return number_integer(static_cast<std::int64_t>(value));
    return number_float(0, std::to_string(value));
  }
  bool number_float(double, const std::string& written) {
    return add([&](Value& v) { v.kind_ = Value::Kind::kReal, v.text_ = written; });
  }
  bool string(std::string& value) {
    return add([&](Value& v) { v.kind_ = Value::Kind::kText, v.text_ = std::move(value); });
  }
  template <class Binary>
  bool binary(Binary&) {
    return fail("binary data");
  }
  bool start_object(std::size_t) { return open(Value::Kind::kObject); }
  bool start_array(std::size_t) { return open(Value::Kind::kArray); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Value& object = *stack_.back();
    if (object.find(name) != nullptr) return fail("duplicate key \"" + name + "\"");
    key_ = std::move(name);
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string& token, const Exception&) {
    position_ = position;
    malformed_ = true;
    return fail("unexpected \"" + token.substr(0, 60) + "\"");
  }

  Value take() && { return std::move(root_); }
  std::string message(std::string_view text) const {
    if (!malformed_) return root_.where_ + ": " + failure_;
    const std::string place = root_.where_ + ": " + position_text(text, position_) + ": ";
    return place + (position_ > text.size() ? "unexpected end" : failure_);
  }

 private:
  // Where the next value goes: the root, an array's end or the member just named.
  Value* place() {
    if (stack_.empty()) return &root_;
    Value& parent = *stack_.back();
    const bool named = parent.kind_ == Value::Kind::kObject;
    Value* child = named ? &parent.members_.emplace_back(std::move(key_), Value{}).second
                         : &parent.items_.emplace_back();
    // The source is followed by ": ", a member by a dot.
    const char* joint = stack_.size() > 1 ? "." : ": ";
    child->where_ = parent.where_ + (named ? joint + parent.members_.back().first
                                           : "[" + std::to_string(parent.items_.size() - 1) + "]");
    return child;
  }
  template <class Set>
  bool add(Set set) {
    set(*place());
    return true;
  }
  bool open(Value::Kind kind) {
    if (stack_.size() == kMaxDepth)
      return fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    Value* value = place();
    value->kind_ = kind;
    // Its address holds: siblings are added to the parent only after this one is closed.
    stack_.push_back(value);
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }
  bool fail(std::string why) {
    failure_ = std::move(why);
    return false;
  }

  Value root_;
  std::vector<Value*> stack_;
  std::string key_;
  std::string failure_;
  std::size_t position_ = 0;
  bool malformed_ = false;
};

std::string Value::describe() const {
  switch (kind_) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return boolean_ ? "true" : "false";
    case Kind::kInteger:
      return std::to_string(integer_);
    case Kind::kReal:
      return text_;
    case Kind::kText:
      return "\"" + text_.substr(0, 60) + "\"";
    case Kind::kArray:
      return "an array";
    case Kind::kObject:
      return "an object";
  }
  return {};
}

Status Value::refuse(std::string_view why) const {
  return {pkcommInvalidArgument, where_ + " is " + describe() + "; " + std::string(why)};
}

Result<bool> Value::boolean() const {
  if (kind_ != Kind::kBoolean) return refuse("allowed true, false");
  return boolean_;
}

Result<std::int64_t> Value::integer(std::int64_t least, std::int64_t most) const {
  if (kind_ != Kind::kInteger || integer_ < least || integer_ > most) {
    return refuse("allowed a whole number " + std::to_string(least) + ".." + std::to_string(most));
  }
  return integer_;
}

Result<std::string> Value::text() const {
  if (kind_ != Kind::kText) return refuse("allowed a text");
  return text_;
}

Result<std::span<const Value>> Value::items() const {
  if (kind_ != Kind::kArray) return refuse("allowed an array");
  return std::span<const Value>(items_);
}

const Value* Value::find(std::string_view key) const noexcept {
  for (const auto& [name, value] : members_) {
    if (name == key) return &value;
  }
  return nullptr;
}

Result<const Value*> Value::member(std::string_view key) const {
  if (kind_ != Kind::kObject) return refuse("allowed an object");
  const Value* found = find(key);
  if (found == nullptr)
    return Status(pkcommInvalidArgument, where_ + ": \"" + std::string(key) + "\" is missing");
  return found;
}

Result<bool> Value::boolean_or(std::string_view key, bool fallback) const {
  const Value* found = find(key);
  return found == nullptr ? Result<bool>(fallback) : found->boolean();
}

Result<std::int64_t> Value::integer_or(std::string_view key, std::int64_t fallback, std::int64_t least,
                                       std::int64_t most) const {
  const Value* found = find(key);
  return found == nullptr ? Result<std::int64_t>(fallback) : found->integer(least, most);
}

Result<std::string> Value::text_or(std::string_view key, std::string_view fallback) const {
  const Value* found = find(key);
  return found == nullptr ? Result<std::string>(std::string(fallback)) : found->text();
}

Status Value::only(std::initializer_list<std::string_view> keys) const {
  if (kind_ != Kind::kObject) return refuse("allowed an object");
  for (const auto& [name, value] : members_) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
    const std::span<const std::string_view> allowed(keys.begin(), keys.size());
    return {pkcommInvalidArgument, where_ + ": \"" + name + "\" is unknown, the nearest is \"" +
                                       std::string(nearest_name(name, allowed)) + "\"; allowed " +
                                       join(allowed, ", ")};
  }
  return {};
}

Result<Value> parse(std::string_view text, std::string_view source) {
  TreeBuilder builder(source);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return Status(pkcommInvalidArgument, builder.message(text));
  }
  return std::move(builder).take();
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kMaxFileBytes + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof() && text.size() <= kMaxFileBytes) {
    return Status(pkcommSystemError, "cannot read \"" + path + "\": " + std::strerror(errno));
  }
  if (text.size() > kMaxFileBytes) {
    return Status(pkcommInvalidArgument, "\"" + path + "\" is larger than " + format_bytes(kMaxFileBytes));
  }
  return text;
}

Result<Value> load(const std::string& path) {
  PK_ASSIGN(const std::string text, read_file(path));
  return parse(text, path);
}

}  // namespace pkcomm::json
