// Typed access to the PKCOMM_* variables of base/environment_table.hpp:
//
//   const std::uint64_t bytes = environment::get<Var::kStaging>();       // the default if unset or bad
//   const auto ctas = environment::get_if_set<Var::kMaxCtas>();          // std::optional<std::int64_t>
//
// A bad value is never used in part: it counts as unset, and one line per process names variable, value, what is
// allowed and what is used instead. Nothing is cached: whoever makes an object reads what the object needs, once.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/environment_table.hpp"
#include "base/log.hpp"
#include "base/status.hpp"

namespace pkcomm::environment {

enum class PlatformChoice { kAuto, kCuda, kHost };
enum class MulticastChoice { kAuto, kOff, kRequire };

/// One part of PKCOMM_ALGORITHM or PKCOMM_MECHANISM, in lower case: "broadcast:^copy_engine" is
/// {"broadcast", true, {"copy_engine"}}. Who knows the names checks them; see report_unknown_name().
struct Rule {
  std::string collective;  // empty: all of them
  bool deny = false;       // the names are forbidden, instead of being the only ones allowed
  std::vector<std::string> names;
};

/// "[collective:][^]name,name;..."; blanks around parts are allowed. ^ stands before the first name or before each.
Result<std::vector<Rule>> parse_rules(std::string_view text);

/// A value of any kind: `number` for choices (index), bytes, integers and milliseconds, `text` and `rules` for those.
struct Value {
  std::int64_t number = 0;
  std::string text;
  std::vector<Rule> rules;
};

/// Reads `text` as a value of `description`; the failure names the variable, the text and what is allowed.
Result<Value> parse(const Description& description, std::string_view text);

/// A variable's value if it is set and good, and a line to log if it is set and bad. Does not log: the logger itself
/// begins with this.
struct Reading {
  std::optional<Value> value;
  std::string complaint;
};
Reading read(Var var);

/// As read(), but logs the complaint, once per process.
std::optional<Value> read_and_complain(Var var);

/// What holds for a variable, as text, for people.
struct InForce {
  std::string value;  // the user's, or the table's default
  bool is_default = true;
  std::string complaint;  // about the user's, where it is refused
};
InForce in_force(const Description& description);

/// What may be written for a variable: "auto, off, require", "1..64".
std::string allowed_values(const Description& description);

template <Var var>
auto convert(const Value& value) {
  constexpr Kind kKind = describe(var).kind;
  static_assert(kKind != Kind::kBuild, "the library does not read this variable");
  if constexpr (var == Var::kPlatform) {
    return static_cast<PlatformChoice>(value.number);
  } else if constexpr (var == Var::kMulticast) {
    return static_cast<MulticastChoice>(value.number);
  } else if constexpr (var == Var::kLog) {
    return static_cast<LogLevel>(value.number);
  } else if constexpr (kKind == Kind::kBytes) {
    return static_cast<std::uint64_t>(value.number);
  } else if constexpr (kKind == Kind::kInteger) {
    return value.number;
  } else if constexpr (kKind == Kind::kSeconds) {
    return std::chrono::milliseconds(value.number);
  } else if constexpr (kKind == Kind::kText) {
    return value.text;
  } else {
    static_assert(kKind == Kind::kRules);
    return value.rules;
  }
}

template <Var var>
using TypeOf = decltype(convert<var>(Value{}));

/// The value that the user set; nothing if unset or bad (which is logged).
template <Var var>
std::optional<TypeOf<var>> get_if_set() {
  const std::optional<Value> value = read_and_complain(var);
  if (!value) return std::nullopt;
  return convert<var>(*value);
}

/// The value that holds: the user's, or the table's default.
template <Var var>
TypeOf<var> get() {
  static_assert(!describe(var).fallback.empty(), "this variable has no default: use get_if_set()");
  const std::optional<Value> value = read_and_complain(var);
  return convert<var>(value ? *value : parse(describe(var), describe(var).fallback).value());
}

/// One line per process: `name` inside `var` is not one of `allowed`. The caller then goes on without it.
void report_unknown_name(Var var, std::string_view name, std::span<const std::string_view> allowed);

/// Warns once per process about each variable whose name begins with PKCOMM_ or PKCOM_ and is not in the table, with
/// the nearest name that is. Left out are the shim's (PKCOMM_NCCL_*), the tests' (PKCOMM_TEST_*) and pkcomm-perf's
/// (PKCOMM_PERF_*).
void warn_about_unknown_variables();

/// The nearest known name to a misspelt one; also by what similar libraries call the same thing.
std::string_view suggest_variable(std::string_view misspelt);

/// The table as text, a variable a paragraph: name, allowed values, default, meaning.
std::string help();

}  // namespace pkcomm::environment
