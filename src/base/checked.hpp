// Arithmetic on sizes and counts that says when it does not fit. Counts come from callers and sizes from counts, so
// every product of the two goes through here before it is a length or an offset.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>

namespace pkcomm::checked {

/// a * b, or nothing where the type cannot hold it.
template <std::integral T>
constexpr std::optional<T> multiply(T a, std::type_identity_t<T> b) noexcept {
  T result{};
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional<T>(result);
}

/// a + b, or nothing where the type cannot hold it.
template <std::integral T>
constexpr std::optional<T> add(T a, std::type_identity_t<T> b) noexcept {
  T result{};
  return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional<T>(result);
}

/// The least multiple of `step` (not 0) that is not below `value`, or nothing where the type cannot hold it.
template <std::unsigned_integral T>
constexpr std::optional<T> round_up(T value, std::type_identity_t<T> step) noexcept {
  const T rest = value % step;
  return rest == 0 ? std::optional<T>(value) : add<T>(value, step - rest);
}

}  // namespace pkcomm::checked
