// Version, result texts, last errors.
#include <string>

#include "api/boundary.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm::api {
namespace {

thread_local std::string last_error;  // of this thread
thread_local std::string handed_out;  // of a communicator, for this thread to read

}  // namespace

pkcommResult_t report(const Status& status) noexcept {
  try {
    last_error = status.message();
  } catch (...) {
    last_error.clear();
  }
  return status.code();
}

}  // namespace pkcomm::api

using namespace pkcomm;

extern "C" pkcommResult_t pkcommGetVersion(int* version) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(version != nullptr, "version is null"));
    *version = PKCOMM_VERSION;
    return {};
  });
}

extern "C" const char* pkcommGetErrorString(pkcommResult_t result) {
  switch (result) {
    case pkcommSuccess:
      return "success";
    case pkcommCudaError:
      return "CUDA error";
    case pkcommSystemError:
      return "system error";
    case pkcommInternalError:
      return "internal error";
    case pkcommInvalidArgument:
      return "invalid argument";
    case pkcommInvalidUsage:
      return "invalid usage";
    case pkcommRemoteError:
      return "remote error";
    case pkcommInProgress:
      return "in progress";
    case pkcommTimeout:
      return "timeout";
    case pkcommUnsupported:
      return "unsupported";
    case pkcommAborted:
      return "aborted";
    case pkcommOutOfMemory:
      return "out of memory";
    case pkcommMismatch:
      return "calls do not match";
  }
  return "unknown result";
}

extern "C" const char* pkcommGetLastError(pkcommComm_t comm) {
  if (comm == nullptr) return api::last_error.c_str();
  try {
    const api::Pin pin(comm);
    api::handed_out = pin.status().ok() ? pin.communicator().last_error() : pin.status().message();
    return api::handed_out.c_str();
  } catch (...) {
    return "";
  }
}
