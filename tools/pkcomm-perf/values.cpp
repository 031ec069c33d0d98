// Numbers are read by std::from_chars, which knows no blanks, signs, prefixes or locales.
#include "values.hpp"

#include <unistd.h>

#include <charconv>

#include "sizes.hpp"
#include "types.hpp"

namespace pkcomm::perf {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

Result<std::size_t> whole_number(const std::string& text, std::size_t least, std::size_t most) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  return Error{"'" + text + "': expected a whole number from " + std::to_string(least) + " to " +
               std::to_string(most)};
}

Result<Injection> parse_injection(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  const Error form{"'" + text + "': expected rank:element|last:out|in|both[:bytes]"};
  if (parts.size() < 3 || parts.size() > 4) return form;
  Injection injection;
  const Result<std::size_t> rank = whole_number(parts[0], 0, 1023);
  if (!rank.ok()) return form;
  injection.rank = static_cast<int>(rank.value());
  if (parts[1] != "last") {
    const Result<std::size_t> element = whole_number(parts[1], 0, kMostBytes);
    if (!element.ok()) return form;
    injection.element = element.value();
  }
  if (parts[2] != "out" && parts[2] != "in" && parts[2] != "both") return form;
  injection.out_of_place = parts[2] != "in";
  injection.in_place = parts[2] != "out";
  if (parts.size() == 4) {
    const Result<std::size_t> bytes = parse_size(parts[3]);
    if (!bytes.ok()) return form;
    injection.bytes = bytes.value();
  }
  return injection;
}

Result<std::vector<pkcommDataType_t>> parse_types(const std::string& text) {
  std::vector<pkcommDataType_t> types;
  for (const std::string& word : split(text, ',')) {
    if (word == "all") {
      for (const DataType& type : kDataTypes) types.push_back(type.value);
      continue;
    }
    const Result<pkcommDataType_t> type = find_type(word);
    PERF_TRY(type);
    types.push_back(type.value());
  }
  return types;
}

Result<std::vector<Op>> parse_ops(const std::string& text) {
  std::vector<Op> ops;
  for (const std::string& word : split(text, ',')) {
    if (word == "all") {
      for (std::size_t i = 0; i < kOpNames.size(); ++i) ops.push_back(static_cast<Op>(i));
      continue;
    }
    const Result<Op> op = find_op(word);
    PERF_TRY(op);
    ops.push_back(op.value());
  }
  return ops;
}

Outcome parse_backends(const std::string& text, Options& options) {
  options.with_pkcomm = options.with_nccl = false;
  for (const std::string& word : split(text, ',')) {
    bool* const named = word == "pkcomm" ? &options.with_pkcomm
                        : word == "nccl" ? &options.with_nccl
                                         : nullptr;
    if (named == nullptr || *named) return Error{"'" + text + "': expected pkcomm, nccl, or pkcomm,nccl"};
    *named = true;
  }
  return {};
}

Outcome writable(const std::string& file) {
  if (file == "-") return {};
  const std::size_t slash = file.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : file.substr(0, slash);
  const bool exists = access(file.c_str(), F_OK) == 0;
  if (!file.empty() && access(exists ? file.c_str() : directory.c_str(), W_OK) == 0) return {};
  return Error{"'" + file + "' cannot be written"};
}

}  // namespace pkcomm::perf
