// The tuning tables that ship with the library: JSON texts, each in a file of its own (*.json.inc, the JSON within a raw
// string literal), compiled in. What each constant rests on is said in the table, under "source".
#pragma once

#include <span>
#include <string_view>

#include "topology/topology.hpp"

namespace pkcomm::dispatch {

struct BuiltinTable {
  std::string_view name;
  PlatformKind platform;
  std::string_view gpu;  ///< as the driver names it; empty on the host platform
  std::string_view json;
};

/// Those for one GPU lie over each other in this order; the first of a platform stands in for unknown GPUs.
std::span<const BuiltinTable> builtin_tables() noexcept;

}  // namespace pkcomm::dispatch
