// The floating-point environment that the reductions assume, for as long as the object lives: rounding to
// nearest, subnormals kept, no traps. Host reductions run in whatever thread waits, and a user's thread may
// flush subnormals (-ffast-math programs do), round otherwise or trap on NaN; results must not depend on it,
// nor may it be changed for the user. Costs a register read where the environment is the usual one.
#pragma once

#ifdef __SSE2__
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace pkcomm::numerics {

class FloatEnvironment {
 public:
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

#ifdef __SSE2__
  FloatEnvironment() noexcept : saved_(_mm_getcsr()) {
    if ((saved_ & ~kStickyFlags) != kDefault) _mm_setcsr(kDefault);
    keep_inside();
  }
  ~FloatEnvironment() {
    keep_inside();
    if ((saved_ & ~kStickyFlags) != kDefault) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kStickyFlags = 0x3F;
  static constexpr unsigned kDefault = 0x1F80;  // all exceptions masked, nearest, neither FTZ nor DAZ
  unsigned saved_;
#else
  FloatEnvironment() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
    keep_inside();
  }
  ~FloatEnvironment() {
    keep_inside();
    std::fesetenv(&saved_);
  }

 private:
  std::fenv_t saved_;
#endif

  // Arithmetic on memory cannot be moved across: its loads and stores cannot.
  static void keep_inside() noexcept { asm volatile("" ::: "memory"); }
};

}  // namespace pkcomm::numerics
