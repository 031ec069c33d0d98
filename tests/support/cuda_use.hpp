// Whether this process has touched CUDA: if so it can fork no ranks any more. Apart from platform.hpp, so that suites without
// a platform of their own can fork processes too.
#pragma once

namespace pkcomm::test {

bool cuda_in_use();
void mark_cuda_in_use();

}  // namespace pkcomm::test
