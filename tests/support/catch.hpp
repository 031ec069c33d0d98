// The one header through which tests see Catch2, version 2 or 3: where the two differ, the names below decide.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
namespace Catch {
using Detail::Approx;  // where version 3 has it
}
#endif

#include <string>

namespace pkcomm::test {

/// Matcher: the text has `part` in it. CHECK_THAT(text, contains_text("rank 2")).
inline auto contains_text(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace pkcomm::test
