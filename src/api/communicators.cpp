// Start-up, split, end, queries.
#include <thread>
#include <vector>

#include "api/boundary.hpp"
#include "base/environment.hpp"
#include "bootstrap/unique_id.hpp"
#include "comm/communicator.hpp"
#include "pkcomm/pkcomm.h"

using namespace pkcomm;

namespace {

constexpr int kMostRanks = 1024;

/// A communicator that starts now, in the background, or at the end of the group, as the caller wants it.
Status start_communicator(pkcommComm_t* out, int nranks, const pkcommUniqueId& id, int rank,
                          Settings settings) {
  const bool blocking = settings.blocking;
  auto communicator = std::make_unique<Communicator>(nranks, id, rank, std::move(settings));
  Communicator& started = *communicator;
  *out = api::make_handle(std::move(communicator));
  const auto start = [out, &started, handle = *out]() -> Status {
    Status status = started.start();
    if (!status.ok()) {
      *out = nullptr;
      (void)api::end_handle(handle, true);
    }
    return status;
  };
  if (!blocking) return started.start_in_background();
  if (Group* const group = Group::open()) {
    group->add(start);
    return {};
  }
  return start();
}

Status require_size(int nranks, const char* argument) {
  if (nranks >= 1 && nranks <= kMostRanks) return {};
  return Status(pkcommInvalidArgument,
                std::string(argument) + " is " + std::to_string(nranks) + "; allowed: 1..1024");
}

}  // namespace

extern "C" pkcommResult_t pkcommGetUniqueId(pkcommUniqueId* id) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(id != nullptr, "id is null"));
    environment::warn_about_unknown_variables();
    PK_ASSIGN(*id, bootstrap::create_unique_id());
    return {};
  });
}

extern "C" pkcommResult_t pkcommCommInitRank(pkcommComm_t* comm, int nranks, pkcommUniqueId id, int rank) {
  return pkcommCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

extern "C" pkcommResult_t pkcommCommInitRankConfig(pkcommComm_t* comm, int nranks, pkcommUniqueId id,
                                                   int rank, const pkcommConfig_t* config) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(comm != nullptr, "comm is null"));
    *comm = nullptr;
    PK_TRY(require_size(nranks, "nranks"));
    if (rank < 0 || rank >= nranks) {
      return Status(pkcommInvalidArgument,
                    "rank is " + std::to_string(rank) + "; allowed: 0.." + std::to_string(nranks - 1));
    }
    PK_TRY(bootstrap::validate(id));
    PK_ASSIGN(Settings settings, Settings::resolve(config));
    environment::warn_about_unknown_variables();
    return start_communicator(comm, nranks, id, rank, std::move(settings));
  });
}

extern "C" pkcommResult_t pkcommCommInitAll(pkcommComm_t* comms, int ndevices, const int* devices) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(comms != nullptr, "comms is null"));
    PK_TRY(require_size(ndevices, "ndevices"));
    PK_ASSIGN(const pkcommUniqueId id, bootstrap::create_unique_id());
    std::vector<Status> results(static_cast<std::size_t>(ndevices));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ndevices; ++rank) {
      threads.emplace_back([&, rank] {
        pkcommConfig_t config = PKCOMM_CONFIG_INITIALIZER;
        config.device = devices != nullptr ? devices[rank] : rank;
        const pkcommResult_t result = pkcommCommInitRankConfig(&comms[rank], ndevices, id, rank, &config);
        if (result != pkcommSuccess) {
          results[static_cast<std::size_t>(rank)] = Status(result, pkcommGetLastError(nullptr));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Status cause = cause_of(results);
    for (int rank = 0; !cause.ok() && rank < ndevices; ++rank) {
      (void)api::end_handle(comms[rank], true);
      comms[rank] = nullptr;
    }
    return cause;
  });
}

extern "C" pkcommResult_t pkcommCommSplit(pkcommComm_t comm, int color, int key, pkcommComm_t* newcomm,
                                          const pkcommConfig_t* config) {
  return api::boundary(comm, [&](Communicator& parent) -> Status {
    PK_TRY(api::require(newcomm != nullptr, "newcomm is null"));
    *newcomm = nullptr;
    Settings settings = parent.settings();
    settings.device = parent.device();
    if (config != nullptr) {
      PK_ASSIGN(settings, Settings::resolve(config));
    }
    const auto split = [=, &parent]() -> Status {
      PK_ASSIGN(const auto part, parent.split(color, key));
      if (!part) return {};
      return start_communicator(newcomm, part->nranks, part->id, part->rank, settings);
    };
    if (Group* const group = Group::open()) {
      group->add(std::function<Status()>(split));
      return {};
    }
    return split();
  });
}

extern "C" pkcommResult_t pkcommCommFinalize(pkcommComm_t comm) {
  return api::boundary(comm, [](Communicator& communicator) { return communicator.finalize(); });
}

extern "C" pkcommResult_t pkcommCommDestroy(pkcommComm_t comm) {
  return api::boundary([&] { return api::end_handle(comm, false); });
}

extern "C" pkcommResult_t pkcommCommAbort(pkcommComm_t comm) {
  return api::boundary([&] { return api::end_handle(comm, true); });
}

extern "C" pkcommResult_t pkcommCommGetAsyncError(pkcommComm_t comm, pkcommResult_t* error) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(error != nullptr, "error is null"));
    const api::Pin pin(comm);
    PK_TRY(pin.status());
    *error = pin.communicator().state().code();
    return {};
  });
}

extern "C" pkcommResult_t pkcommCommCount(pkcommComm_t comm, int* count) {
  return api::boundary(comm, [&](const Communicator& communicator) -> Status {
    PK_TRY(api::require(count != nullptr, "count is null"));
    *count = communicator.nranks();
    return {};
  });
}

extern "C" pkcommResult_t pkcommCommUserRank(pkcommComm_t comm, int* rank) {
  return api::boundary(comm, [&](const Communicator& communicator) -> Status {
    PK_TRY(api::require(rank != nullptr, "rank is null"));
    *rank = communicator.rank();
    return {};
  });
}

extern "C" pkcommResult_t pkcommCommDevice(pkcommComm_t comm, int* device) {
  return api::boundary(comm, [&](const Communicator& communicator) -> Status {
    PK_TRY(api::require(device != nullptr, "device is null"));
    *device = communicator.device();
    return {};
  });
}

extern "C" pkcommResult_t pkcommCommGetProperties(pkcommComm_t comm, pkcommCommProperties_t* properties) {
  return api::boundary(comm, [&](const Communicator& communicator) -> Status {
    PK_TRY(api::require(properties != nullptr, "properties is null"));
    PK_TRY(api::require(properties->size >= sizeof(std::size_t), "properties->size is not set"));
    communicator.fill(*properties);
    return {};
  });
}
