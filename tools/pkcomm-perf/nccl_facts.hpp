// What the reports say of the NCCL that was measured.
#pragma once

#include <string>

namespace pkcomm::perf {

struct NcclFacts {
  std::string version;  // "2.28.9"
  std::string file;
  std::string nvls;  // NCCL_NVLS_ENABLE as NCCL saw it
};

}  // namespace pkcomm::perf
