// Host streams alone so far: the public header has no way to make a device's, and a GPU's memory would need
// copies for the data check. So a communicator on any other platform is refused with a sentence instead of
// measured wrongly.
#include "session.hpp"

#include <cstring>

namespace pkcomm::perf {

Result<Session> Session::open(const Options& options, Team& team) {
  pkcommUniqueId id{};
  if (team.rank() == 0) PERF_TRY(check(pkcommGetUniqueId(&id), "pkcommGetUniqueId"));
  PERF_TRY(team.broadcast(&id, sizeof id));

  pkcommConfig_t config = PKCOMM_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.name = "pkcomm-perf";
  if (options.timeout_s > 0) config.timeout_ms = options.timeout_s * std::int64_t{1000};
  Session session;
  PERF_TRY(check(pkcommCommInitRankConfig(&session.comm_, team.nranks(), id, team.rank(), &config),
                 "pkcommCommInitRankConfig"));
  session.properties_.size = sizeof session.properties_;
  PERF_TRY(check(pkcommCommGetProperties(session.comm_, &session.properties_), "pkcommCommGetProperties",
                 session.comm_));
  if (std::strcmp(session.properties_.platform, "host") != 0) {
    return Error{std::string("the communicator is on platform '") + session.properties_.platform +
                 "'; this pkcomm-perf measures on the host platform alone (--platform host)"};
  }
  if (!options.null_stream) PERF_TRY(check(pkcommStreamCreate(&session.stream_), "pkcommStreamCreate"));
  return session;
}

Session::~Session() {
  if (comm_ == nullptr) return;
  if (stream_ != nullptr) (void)pkcommStreamDestroy(stream_);
  (void)pkcommCommDestroy(comm_);
}

Outcome Session::align() const {
  PERF_TRY(check(pkcommBarrier(comm_, stream_), "pkcommBarrier", comm_));
  return synchronize();
}

}  // namespace pkcomm::perf
