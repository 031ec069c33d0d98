// The one error type. A Status is a null pointer on success, so that passing success on costs nothing; a failure
// carries the result code that the C API returns and a sentence with the values that explain it, made where the fault
// is detected. Result<T> is a Status or a value. PK_TRY passes an error up, PK_ASSIGN takes the value or passes it up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pkcomm/pkcomm.h"

namespace pkcomm {

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(pkcommResult_t code, std::string message)
      : failure_(code == pkcommSuccess ? nullptr
                                       : std::make_unique<Failure>(Failure{code, std::move(message)})) {}
  Status(const Status& other)
      : failure_(other.failure_ ? std::make_unique<Failure>(*other.failure_) : nullptr) {}
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const noexcept { return failure_ == nullptr; }
  pkcommResult_t code() const noexcept { return failure_ ? failure_->code : pkcommSuccess; }
  const std::string& message() const noexcept {
    static const std::string none;
    return failure_ ? failure_->message : none;
  }

 private:
  struct Failure {
    pkcommResult_t code;
    std::string message;
  };
  std::unique_ptr<Failure> failure_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  bool ok() const noexcept { return value_.has_value(); }
  const Status& status() const& noexcept { return status_; }
  Status&& status() && noexcept { return std::move(status_); }
  T& value() & noexcept { return *value_; }
  const T& value() const& noexcept { return *value_; }
  T&& value() && noexcept { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace pkcomm

#define PK_JOIN_(a, b) a##b
#define PK_JOIN(a, b) PK_JOIN_(a, b)

#define PK_TRY(expression)                                                            \
  do {                                                                                \
    if (::pkcomm::Status pk_status = (expression); !pk_status.ok()) return pk_status; \
  } while (false)

#define PK_ASSIGN(target, expression)                                                                \
  auto PK_JOIN(pk_result_, __LINE__) = (expression);                                                 \
  if (!PK_JOIN(pk_result_, __LINE__).ok()) return std::move(PK_JOIN(pk_result_, __LINE__)).status(); \
  target = std::move(PK_JOIN(pk_result_, __LINE__)).value()
