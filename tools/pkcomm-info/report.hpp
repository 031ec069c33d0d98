// The two forms of the answer.
#pragma once

#include <string>

#include "facts.hpp"

namespace pkcomm::info {

/// For people: columns, only what is there.
std::string to_text(const Facts& facts, bool all_variables);

/// For programs: every field always, null where nothing is known; docs/pkcomm-info.md lists them.
std::string to_json(const Facts& facts);

}  // namespace pkcomm::info
