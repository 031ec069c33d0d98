// The C boundary: what every extern "C" function is made of. A body returns a Status; failures and whatever is thrown
// become a result code, and the text is kept for the thread and for the communicator.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "api/handle.hpp"
#include "base/status.hpp"
#include "comm/group.hpp"

namespace pkcomm::api {

/// Keeps the text of a failure for pkcommGetLastError(NULL).
pkcommResult_t report(const Status& status) noexcept;

inline Status require(bool condition, const char* otherwise) {
  return condition ? Status() : Status(pkcommInvalidArgument, otherwise);
}

/// Runs `body`, which returns a Status.
template <class Body>
pkcommResult_t boundary(const Body& body) noexcept {
  try {
    const Status status = body();
    if (status.ok()) return pkcommSuccess;
    if (Group* const group = Group::open()) group->add_failure(status);
    return report(status);
  } catch (const std::bad_alloc&) {
    return report(Status(pkcommOutOfMemory, "out of memory"));
  } catch (const std::exception& error) {
    return report(Status(pkcommSystemError, error.what()));
  } catch (...) {
    return report(Status(pkcommInternalError, "an unknown exception"));
  }
}

/// The same for calls on a communicator: `body` receives it, alive for as long as the call lasts.
template <class Body>
pkcommResult_t boundary(pkcommComm_t comm, const Body& body) noexcept {
  return boundary([&]() -> Status {
    const Pin pin(comm);
    PK_TRY(pin.status());
    Status status = body(pin.communicator());
    if (!status.ok()) pin.communicator().remember_error(status);
    return status;
  });
}

}  // namespace pkcomm::api
