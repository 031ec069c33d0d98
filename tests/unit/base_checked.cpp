// base/checked.hpp.
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/checked.hpp"
#include "support/catch.hpp"

using namespace pkcomm;

TEST_CASE("checked arithmetic gives a value exactly where the type holds it", "[base]") {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  CHECK(checked::multiply(kMost / 2, 2) == kMost - 1);
  CHECK(checked::multiply(kMost / 2 + 1, 2) == std::nullopt);
  CHECK(checked::multiply(std::uint64_t{0}, kMost) == 0);
  CHECK(checked::add(kMost, 0) == kMost);
  CHECK(checked::add(kMost, 1) == std::nullopt);
  CHECK(checked::add(std::int64_t{-1}, 1) == 0);
  CHECK(checked::add(std::numeric_limits<std::int64_t>::min(), -1) == std::nullopt);
  CHECK(checked::round_up(std::uint64_t{17}, 16) == 32);
  CHECK(checked::round_up(std::uint64_t{16}, 16) == 16);
  CHECK(checked::round_up(kMost, 16) == std::nullopt);
}

TEST_CASE("C03: 2^61+1 doubles have no byte size", "[base][C03]") {
  CHECK(checked::multiply((std::size_t{1} << 61) + 1, sizeof(double)) == std::nullopt);
}
