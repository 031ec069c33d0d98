// For tests whose processes end without exit(): line counts are written at exit() alone, unless asked for.
#pragma once

#ifdef PKCOMM_COVERAGE
extern "C" void __gcov_dump(void);
#endif

namespace pkcomm::test {

/// To be called before _exit(), or before a process kills itself; does nothing outside coverage builds.
inline void keep_coverage() {
#ifdef PKCOMM_COVERAGE
  __gcov_dump();
#endif
}

}  // namespace pkcomm::test
