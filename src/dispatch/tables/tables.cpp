// Compiles the tables in.
#include "dispatch/tables/tables.hpp"

#include <array>

namespace pkcomm::dispatch {
namespace {

constexpr std::array<BuiltinTable, 5> kTables = {{
    {
        "host",
        PlatformKind::kHost,
        "",
#include "dispatch/tables/host.json.inc"
    },
    {
        "h200x4",
        PlatformKind::kCuda,
        "NVIDIA H200",
#include "dispatch/tables/h200x4.json.inc"
    },
    {
        "h200x2",
        PlatformKind::kCuda,
        "NVIDIA H200",
#include "dispatch/tables/h200x2.json.inc"
    },
    {
        "h200x8",
        PlatformKind::kCuda,
        "NVIDIA H200",
#include "dispatch/tables/h200x8.json.inc"
    },
    {
        "gb200x72",
        PlatformKind::kCuda,
        "NVIDIA GB200",
#include "dispatch/tables/gb200x72.json.inc"
    },
}};

}  // namespace

std::span<const BuiltinTable> builtin_tables() noexcept { return kTables; }

}  // namespace pkcomm::dispatch
