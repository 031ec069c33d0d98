// Results do not depend on the floating-point mode of the thread that computes them, and the mode is left as
// it was.
#include <cfenv>
#include <cmath>

#include "numerics/host_reduce.hpp"
#include "support/catch.hpp"
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace pkcomm::numerics {
namespace {

float sum_of(float a, float b) {
  const void* sources[] = {&a, &b};
  float sum = -1;
  host_reduce_rows(pkcommFloat32, ReduceKind::kSum)(1, 2, sources, &sum, nullptr);
  return sum;
}

}  // namespace

TEST_CASE("rounding is to nearest whatever the caller's mode, which is kept", "[unit][numerics]") {
  const int mode = GENERATE(FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO);
  std::fesetround(mode);
  const float up = sum_of(1, 0x1.8p-24f), even = sum_of(1, 0x1p-24f), zero = sum_of(1, -1);
  const int mode_after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  CHECK(up == 1 + 0x1p-23f);
  CHECK(even == 1);
  CHECK_FALSE(std::signbit(zero));
  CHECK(mode_after == mode);
}

#ifdef __SSE2__
TEST_CASE("subnormals are kept and nothing traps whatever the caller's mode, which is kept",
          "[unit][numerics]") {
  const unsigned usual = _mm_getcsr();
  const unsigned flush_and_trap = 0x8040;  // flush to zero, denormals are zero, every exception unmasked
  _mm_setcsr(flush_and_trap);
  const float subnormal = sum_of(0x1p-149f, 0x1p-148f), infinite = sum_of(0x1.8p127f, 0x1.8p127f);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(usual);
  CHECK(subnormal == 0x1.8p-148f);
  CHECK(infinite == HUGE_VALF);
  CHECK(after == flush_and_trap);
}
#endif

}  // namespace pkcomm::numerics
