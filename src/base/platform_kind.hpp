// The platforms by name.
#pragma once

#include <cstdint>
#include <string_view>

namespace pkcomm {

enum class PlatformKind : std::uint8_t { kHost, kCuda };

constexpr std::string_view name(PlatformKind platform) noexcept {
  return platform == PlatformKind::kHost ? "host" : "cuda";
}

}  // namespace pkcomm
