// Readers for the values of single flags. Each takes the whole text or gives a sentence that quotes it and
// says what is allowed; the caller puts the flag's name in front.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "options.hpp"
#include "result.hpp"

namespace pkcomm::perf {

/// A number from `least` to `most`, digits alone.
Result<std::size_t> whole_number(const std::string& text, std::size_t least, std::size_t most);

/// rank:element|last:out|in|both[:bytes]
Result<Injection> parse_injection(const std::string& text);

/// Names separated by commas; "all" stands for all.
Result<std::vector<pkcommDataType_t>> parse_types(const std::string& text);
Result<std::vector<Op>> parse_ops(const std::string& text);

/// pkcomm, nccl, or both, separated by a comma.
Outcome parse_backends(const std::string& text, Options& options);

/// Whether a file could be written, as far as can be said without touching it; "-" always can.
Outcome writable(const std::string& file);

}  // namespace pkcomm::perf
