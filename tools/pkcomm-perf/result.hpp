// How the tool's own functions fail: with one sentence that names what was wrong. Nothing here throws; what
// fails on one rank is printed once, by the process that started the ranks.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "pkcomm/pkcomm.h"

namespace pkcomm::perf {

struct Error {
  std::string text;
  bool hearsay = false;  // the consequence of another rank's failure, which says more
};

/// Success, or the error.
class [[nodiscard]] Outcome {
 public:
  Outcome() = default;
  Outcome(Error error) : error_(std::move(error)) {}  // NOLINT: `return Error{...}` reads best
  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

/// A value, or the error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT
  Result(Error error) : value_(std::move(error)) {}  // NOLINT
  bool ok() const { return std::holds_alternative<T>(value_); }
  const Error& error() const { return std::get<Error>(value_); }
  T& value() { return std::get<T>(value_); }
  const T& value() const { return std::get<T>(value_); }

 private:
  std::variant<T, Error> value_;
};

#define PERF_TRY(expression)                                           \
  do {                                                                 \
    if (const auto& perf_outcome = (expression); !perf_outcome.ok()) { \
      return perf_outcome.error();                                     \
    }                                                                  \
  } while (false)

/// Turns what a library call returned into an Outcome, with the call's name and the library's own sentence.
inline Outcome check(pkcommResult_t result, const char* call, pkcommComm_t comm = nullptr) {
  if (result == pkcommSuccess) return {};
  std::string text = std::string(call) + ": " + pkcommGetErrorString(result);
  std::string detail = pkcommGetLastError(nullptr);
  if (detail.empty() && comm != nullptr) detail = pkcommGetLastError(comm);
  if (!detail.empty()) text += ": " + detail;
  return Error{std::move(text), result == pkcommRemoteError || result == pkcommAborted};
}

}  // namespace pkcomm::perf
