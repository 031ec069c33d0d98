// What a communicator made now would find: for the C API, without making one.
#pragma once

#include "base/status.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm {

/// Writes no more than properties.size bytes.
Status fill_platform_properties(pkcommPlatformProperties_t& properties);

}  // namespace pkcomm
