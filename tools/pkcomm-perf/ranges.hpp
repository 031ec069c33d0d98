// Names stretches of the host's time for a profiler, by NVTX where the build has its header. Without a
// profiler a range costs a comparison.
#pragma once

#if PKCOMM_TOOL_CUDA && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace pkcomm::perf {

class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() { nvtxRangePop(); }
};

}  // namespace pkcomm::perf

#else

namespace pkcomm::perf {

class Range {
 public:
  explicit Range(const char*) {}
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() {}  // not trivial, so that an object of it is never an unused variable
};

}  // namespace pkcomm::perf

#endif
