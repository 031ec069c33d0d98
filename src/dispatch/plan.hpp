// What goes into a decision and what comes out. plan() is a pure function of its arguments, all of which are equal on all
// ranks: so the ranks decide alike without a word between them. Prices are integers, so no compiler or locale decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "collectives/descriptors.hpp"
#include "topology/topology.hpp"

namespace pkcomm::dispatch {

class Overrides;
class Tuning;

/// One call, as all ranks see it: nothing of alignment, in-place or null buffers belongs here.
struct Request {
  Collective collective = Collective::kAllReduce;
  /// count * element for all_reduce, reduce, broadcast; nranks * count * element for all_gather, reduce_scatter,
  /// all_to_all, gather, scatter; 0 for barrier, all_to_all_v and send/recv, which have no common size.
  std::size_t bytes = 0;
  pkcommDataType_t dtype = pkcommFloat32;
  numerics::ReduceKind kind = numerics::ReduceKind::kSum;  ///< ignored where nothing is reduced
  int nranks = 2;
  bool send_window = false;  ///< symmetric memory on all ranks
  bool recv_window = false;
  int min_ctas = 1;  ///< as configured; algorithms without CTAs disregard both
  int max_ctas = 64;
  bool deterministic = false;  ///< exclude what may give other bits than the fold in rank order
};

/// What the ranks agreed at init: the least of all.
struct Capabilities {
  PlatformKind platform = PlatformKind::kHost;
  bool multicast = false;
  /// Why not, in words. Shown, never compared: ranks may have different reasons.
  std::string multicast_reason;
  /// Payload bytes that one phase of a packet algorithm may send to one peer.
  std::size_t ll_capacity_bytes = 0;
  /// Raw staging of one phase of one ordered pair; the CTAs share it, and half of a share bounds a round.
  std::size_t slot_bytes = 0;
  /// The same of the copy engine, which has staging of its own.
  std::size_t engine_bytes = 0;
  /// What the platform runs, a bit for each algorithm.
  std::uint32_t algorithms = ~std::uint32_t{0};
};

/// How one call is done.
struct Plan {
  Algorithm algorithm = Algorithm::kDirectLdst;
  Mechanism mechanism = Mechanism::kRegister;
  bool zero_copy = false;  ///< between windows, no staging
  int ctas = 1;            ///< 0: the copy engine alone
  int threads = 1;         ///< of one CTA; 1 on the host platform
  std::size_t chunk_bytes =
      0;  ///< one round through staging for one peer, a multiple of 256; 0: in one piece
  std::uint64_t predicted_ns = 0;

  bool operator==(const Plan&) const = default;
};

/// A plan, and whether the environment's wish could not be met for it.
struct Decision {
  Plan plan;
  bool algorithm_ignored = false;  ///< PKCOMM_ALGORITHM allows nothing that is legal here
  bool mechanism_ignored = false;  ///< PKCOMM_MECHANISM likewise
};

/// Chooses. Allocates nothing on success. pkcommUnsupported where no algorithm is legal.
Result<Decision> plan(const Request& request, const Capabilities& capabilities, const Tuning& tuning,
                      const Overrides& overrides);

/// One algorithm's price, or why it is not legal.
struct Candidate {
  Plan plan;
  bool legal = false;
  std::string reason;
};

/// Every algorithm and which was chosen; what `--explain` prints and pkcommExplain returns.
struct Explanation {
  Request request;
  std::string tuning;  ///< name and source of the table
  std::vector<Candidate> candidates;
  int chosen = -1;   ///< -1: nothing legal, or nothing to do
  std::string note;  ///< overrides that were ignored; a provisional table
};

Explanation explain(const Request& request, const Capabilities& capabilities, const Tuning& tuning,
                    const Overrides& overrides);

/// The same as a table in words, lines ended by '\n'.
std::string to_text(const Explanation& explanation);

/// The same for C; `out->size` was set by the caller and only that many bytes are written.
void fill(const Explanation& explanation, pkcommExplanation_t& out);

}  // namespace pkcomm::dispatch
