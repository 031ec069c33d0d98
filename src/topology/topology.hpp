// A machine as a value: what the dispatcher and the placement of memory need to know of it, found on this machine or read
// from a recording. Two equal values give equal decisions, so the choice for a machine that is not at hand can be
// printed, tested and argued about anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/platform_kind.hpp"
#include "base/status.hpp"

namespace pkcomm {

namespace topology {

struct NumaNode {
  int cores = 0;
  std::uint64_t memory_bytes = 0;

  bool operator==(const NumaNode&) const = default;
};

struct Gpu {
  std::string name;  ///< as its driver gives it: "NVIDIA H200"
  std::string arch;  ///< "sm_90"
  int sms = 0;
  int links = 0;           ///< NVLinks to the switch
  int link_mb_per_s = 0;   ///< of one link in one direction, 1e6 bytes
  bool multicast = false;  ///< its driver reports multicast objects

  bool operator==(const Gpu&) const = default;
};

}  // namespace topology

struct Topology {
  PlatformKind platform = PlatformKind::kHost;
  std::string machine;  ///< free text that tells recordings apart
  std::string cpu;      ///< model name; may be empty
  int cores = 1;        ///< processing units that control groups leave to this process
  std::vector<topology::NumaNode> numa_nodes;
  std::vector<topology::Gpu> gpus;
  std::string nvlink_domain;  ///< what the GPUs are joined by, in words; empty without GPUs
  /// Why multicast objects are not to be used although the GPUs could; empty: nothing speaks against them.
  std::string multicast_off;

  bool operator==(const Topology&) const = default;
  bool multicast() const noexcept;  ///< every GPU can, and nothing speaks against it
};

namespace topology {

/// This machine without its GPUs, which their driver reports. Looked at once per process (milliseconds), then copied.
/// A machine that cannot be read counts as one NUMA node.
const Topology& detect_host();

/// A recorded machine, from a file or from its text. `source` names the text in messages.
Result<Topology> load(const std::string& path);
Result<Topology> parse(std::string_view text, std::string_view source);

}  // namespace topology
}  // namespace pkcomm
