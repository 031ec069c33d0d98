// Reading, checking and explaining the variables of base/environment_table.hpp.
#include "base/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/text.hpp"

namespace pkcomm::environment {
namespace {

std::string seconds_text(std::int64_t milliseconds) {
  std::string text = std::to_string(milliseconds / 1000);
  if (milliseconds % 1000 != 0) text += "." + std::to_string(1000 + milliseconds % 1000).substr(1);
  return text;
}

Status refuse(const Description& description, std::string_view text, std::string_view why) {
  return {pkcommInvalidArgument, std::string(description.name) + "=\"" + std::string(text) +
                                     "\": " + std::string(why) + "; allowed " + allowed_values(description)};
}

Result<Value> parse_choice(const Description& description, std::string_view text) {
  const auto choices = split(description.choices, '|');
  const std::string word = lower_case(text);
  const auto found = std::find(choices.begin(), choices.end(), word);
  if (found != choices.end()) return Value{.number = found - choices.begin(), .text = {}, .rules = {}};
  return refuse(description, text, "unknown, nearest is " + std::string(nearest_name(word, choices)));
}

/// Bytes, integers and seconds: `number` is what their reader found, in the unit of the description's limits.
template <typename Number>
Result<Value> parse_number(const Description& description, std::string_view text, Result<Number> number,
                           std::string_view what) {
  // The reader's own message repeats the text; only its kind of failure matters here.
  if (!number.ok()) return refuse(description, text, "not a " + std::string(what));
  // Compared as unsigned where the type is: a size above 2^63 must not turn negative.
  const Number value = number.value();
  if (std::cmp_less(value, description.least)) return refuse(description, text, "below the least");
  if (std::cmp_greater(value, description.most)) return refuse(description, text, "above the most");
  return Value{.number = static_cast<std::int64_t>(value), .text = {}, .rules = {}};
}

Result<std::int64_t> milliseconds(std::string_view text) {
  PK_ASSIGN(const std::chrono::milliseconds value, parse_seconds(text));
  return static_cast<std::int64_t>(value.count());
}

bool is_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Result<Rule> parse_rule(std::string_view text) {
  Rule rule;
  std::string_view names = text;
  if (const std::size_t colon = text.find(':'); colon != text.npos) {
    rule.collective = lower_case(trim(text.substr(0, colon)));
    if (!is_name(rule.collective)) {
      return Status(pkcommInvalidArgument, "\"" + rule.collective + "\" is no collective's name");
    }
    names = trim(text.substr(colon + 1));
  }
  rule.deny = names.starts_with('^');
  for (std::string_view part : split(names, ',')) {
    if (part.starts_with('^')) {
      if (!rule.deny) {
        return Status(pkcommInvalidArgument, "\"" + std::string(names) + "\" mixes allowed and denied names");
      }
      part = trim(part.substr(1));
    }
    std::string name = lower_case(part);
    if (!is_name(name)) return Status(pkcommInvalidArgument, "\"" + name + "\" is not a name");
    rule.names.push_back(std::move(name));
  }
  return rule;
}

}  // namespace

std::string allowed_values(const Description& description) {
  switch (description.kind) {
    case Kind::kChoice:
    case Kind::kBuild:
      return join(split(description.choices, '|'), ", ");
    case Kind::kText:
      return "any text";
    case Kind::kBytes:
      return format_bytes(static_cast<std::uint64_t>(description.least)) + ".." +
             format_bytes(static_cast<std::uint64_t>(description.most)) + " bytes, like 64M";
    case Kind::kInteger:
      return std::to_string(description.least) + ".." + std::to_string(description.most);
    case Kind::kSeconds:
      return seconds_text(description.least) + ".." + seconds_text(description.most) + " seconds";
    case Kind::kRules:
      return "[collective:][^]name,name;...";
  }
  return {};
}

Result<std::vector<Rule>> parse_rules(std::string_view text) {
  std::vector<Rule> rules;
  for (const std::string_view part : split(text, ';')) {
    if (part.empty()) continue;  // a closing ; is no fault
    PK_ASSIGN(Rule rule, parse_rule(part));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Result<Value> parse(const Description& description, std::string_view text) {
  switch (description.kind) {
    case Kind::kChoice:
      return parse_choice(description, text);
    case Kind::kBytes:
      return parse_number(description, text, parse_bytes(text), "size");
    case Kind::kInteger:
      return parse_number(description, text, parse_integer(text), "whole number");
    case Kind::kSeconds:
      return parse_number(description, text, milliseconds(text), "number of seconds");
    case Kind::kRules: {
      auto rules = parse_rules(text);
      if (!rules.ok()) return refuse(description, text, rules.status().message());
      return Value{.number = 0, .text = {}, .rules = std::move(rules).value()};
    }
    case Kind::kText:
    case Kind::kBuild:
      break;
  }
  return Value{.number = 0, .text = std::string(text), .rules = {}};
}

Reading read(Var var) {
  const Description& description = describe(var);
  const char* raw = std::getenv(description.name.data());
  if (raw == nullptr) return {};
  const std::string_view text = raw;
  const bool may_be_empty = description.kind == Kind::kText || description.kind == Kind::kRules;
  if (text.empty() && may_be_empty) return {};
  Result<Value> value = parse(description, text);
  if (value.ok()) return {.value = std::move(value).value(), .complaint = {}};
  const std::string used =
      description.fallback.empty() ? "ignored" : "using " + std::string(description.fallback);
  return {.value = std::nullopt, .complaint = value.status().message() + "; " + used};
}

InForce in_force(const Description& description) {
  Reading reading = read(description.var);
  if (reading.value)
    return {.value = std::getenv(description.name.data()), .is_default = false, .complaint = {}};
  return {.value = std::string(description.fallback),
          .is_default = true,
          .complaint = std::move(reading.complaint)};
}

std::optional<Value> read_and_complain(Var var) {
  Reading reading = read(var);
  if (!reading.complaint.empty()) log_once(reading.complaint, LogLevel::kWarn, reading.complaint);
  return std::move(reading.value);
}

void report_unknown_name(Var var, std::string_view name, std::span<const std::string_view> allowed) {
  const std::string line = std::string(describe(var).name) + ": unknown name \"" + std::string(name) +
                           "\", nearest is " + std::string(nearest_name(name, allowed)) + "; allowed " +
                           join(allowed, ", ") + "; ignored";
  log_once(line, LogLevel::kWarn, line);
}

std::string_view suggest_variable(std::string_view misspelt) {
  constexpr std::string_view kPrefix = "PKCOMM_";
  const std::size_t underscore = misspelt.find('_');
  const std::string_view word = misspelt.substr(underscore == misspelt.npos ? 0 : underscore + 1);
  std::vector<std::string_view> names;
  for (const Description& description : kTable) {
    for (const std::string_view habit : split(description.habits, '|')) {
      if (habit == word) return description.name;
    }
    names.push_back(description.name.substr(kPrefix.size()));
  }
  const std::string_view nearest = nearest_name(word, names);
  return kTable[static_cast<std::size_t>(std::find(names.begin(), names.end(), nearest) - names.begin())]
      .name;
}

void warn_about_unknown_variables() {
  // The shim's, which checks them itself, and those of the tests and of pkcomm-perf.
  constexpr std::array<std::string_view, 3> kOthers = {"PKCOMM_NCCL_", "PKCOMM_TEST_", "PKCOMM_PERF_"};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view setting = *entry;
    const std::string_view name = setting.substr(0, setting.find('='));
    if (!name.starts_with("PKCOMM_") && !name.starts_with("PKCOM_")) continue;
    const auto of = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (std::any_of(kOthers.begin(), kOthers.end(), of)) continue;
    const auto known = [&](const Description& description) { return description.name == name; };
    if (std::any_of(kTable.begin(), kTable.end(), known)) continue;
    const std::string line = std::string(name) +
                             " is not a variable of pkcomm and has no effect; the nearest is " +
                             std::string(suggest_variable(name));
    log_once(line, LogLevel::kWarn, line);
  }
}

std::string help() {
  std::string text;
  for (const Description& description : kTable) {
    text.append(description.name).append("\n    ").append(description.meaning).append("\n    allowed: ");
    text.append(allowed_values(description)).append("; default: ");
    text.append(description.fallback.empty() ? "none" : description.fallback).append("\n");
  }
  return text;
}

}  // namespace pkcomm::environment
