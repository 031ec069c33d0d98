// The command line.
#pragma once

#include <optional>

namespace pkcomm::info {

struct Options {
  bool json = false;
  bool variables = false;  // all of them, with their meaning
};

/// Nothing where the program is to end at once, with `exit_code`.
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace pkcomm::info
