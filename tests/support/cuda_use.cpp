// One flag a process; a child inherits a false one, since nobody forks after it is true.
#include "support/cuda_use.hpp"

#include <atomic>

namespace pkcomm::test {
namespace {

std::atomic<bool> in_use{false};

}  // namespace

bool cuda_in_use() { return in_use.load(); }
void mark_cuda_in_use() { in_use.store(true); }

}  // namespace pkcomm::test
