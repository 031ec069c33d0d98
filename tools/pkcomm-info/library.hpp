// What the library says of itself, through its public header.
#pragma once

#include "facts.hpp"

namespace pkcomm::info {

Library ask_library();

}  // namespace pkcomm::info
