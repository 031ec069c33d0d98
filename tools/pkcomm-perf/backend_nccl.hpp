// NCCL as a backend: what a user would call instead.
#pragma once

#include "backend.hpp"
#include "nccl_facts.hpp"

namespace pkcomm::perf {

class NcclBackend : public Backend {
 public:
  virtual NcclFacts facts() const = 0;
  /// Ends the membership in order, with all ranks; without, the destructor breaks it off and waits for
  /// nobody.
  virtual Outcome close() = 0;
};

/// Collective over the team, on a CUDA device. `device` and `team` outlive the backend.
Result<std::unique_ptr<NcclBackend>> open_nccl(const Options& options, Team& team, Device& device);

}  // namespace pkcomm::perf
