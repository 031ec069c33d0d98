// The options of one communicator, resolved once at init: the configuration where it says something, then the environment,
// then the defaults. And the part of them that all ranks must have equal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/status.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm {

struct Settings {
  bool blocking = true;
  int min_ctas = 1;
  int max_ctas = 1;
  std::optional<int> device;  // none: the platform has no current one
  std::string name;
  std::int64_t timeout_ms = 0;
  std::int64_t init_timeout_ms = 0;
  std::uint64_t staging_bytes = 0;
  std::uint64_t heap_limit = 0;
  std::optional<std::int64_t> spin_us;
  std::optional<std::uint64_t> host_seed;

  /// Reads no more than config->size bytes; null: all defaults, the device being the calling thread's current one.
  static Result<Settings> resolve(const pkcommConfig_t* config);
};

/// What must be equal on all ranks; compared at init.
struct Agreement {
  std::uint64_t version, nranks, platform, staging_bytes, heap_limit, min_ctas, max_ctas, dispatcher;
};

/// Which values of two agreements differ, in words.
std::string describe_difference(std::span<const std::byte> one, std::span<const std::byte> other);

}  // namespace pkcomm
