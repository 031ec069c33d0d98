// The symmetric heap and windows.
#include <algorithm>
#include <cstring>

#include "api/boundary.hpp"
#include "comm/communicator.hpp"
#include "pkcomm/pkcomm.h"

using namespace pkcomm;

extern "C" pkcommResult_t pkcommHeapAlloc(pkcommComm_t comm, size_t bytes, void** ptr) {
  return api::boundary(comm, [&](Communicator& communicator) -> Status {
    PK_TRY(api::require(ptr != nullptr, "ptr is null"));
    *ptr = nullptr;
    PK_ASSIGN(*ptr, communicator.heap_alloc(bytes));
    return {};
  });
}

extern "C" pkcommResult_t pkcommHeapFree(pkcommComm_t comm, void* ptr) {
  return api::boundary(comm, [&](Communicator& communicator) -> Status {
    if (ptr == nullptr) return {};
    return communicator.heap_free(ptr);
  });
}

extern "C" pkcommResult_t pkcommHeapPeerPointer(pkcommComm_t comm, const void* ptr, int peer, void** out) {
  return api::boundary(comm, [&](const Communicator& communicator) -> Status {
    PK_TRY(api::require(ptr != nullptr, "ptr is null"));
    PK_TRY(api::require(out != nullptr, "out is null"));
    PK_ASSIGN(*out, communicator.peer_pointer(ptr, peer));
    return {};
  });
}

extern "C" pkcommResult_t pkcommCommGetDeviceView(pkcommComm_t comm, pkcommDeviceView_t* view) {
  return api::boundary(comm, [&](const Communicator& communicator) -> Status {
    PK_TRY(api::require(view != nullptr, "view is null"));
    if (view->size < sizeof view->size) {
      return Status(pkcommInvalidArgument,
                    "view.size is " + std::to_string(view->size) + "; set it to sizeof(pkcommDeviceView_t)");
    }
    PK_ASSIGN(pkcommDeviceView_t all, communicator.device_view());
    all.size = view->size;
    std::memcpy(view, &all, std::min(view->size, sizeof all));
    return {};
  });
}

extern "C" pkcommResult_t pkcommHeapMulticastPointer(pkcommComm_t comm, const void* ptr, void** out) {
  return api::boundary(comm, [&](const Communicator& communicator) -> Status {
    PK_TRY(api::require(ptr != nullptr, "ptr is null"));
    PK_TRY(api::require(out != nullptr, "out is null"));
    *out = nullptr;
    return communicator.multicast_pointer(ptr);
  });
}

extern "C" pkcommResult_t pkcommWindowRegister(pkcommComm_t comm, void* ptr, size_t bytes,
                                               pkcommWindow_t* window) {
  return api::boundary(comm, [&](Communicator& communicator) -> Status {
    PK_TRY(api::require(window != nullptr, "window is null"));
    *window = nullptr;
    PK_TRY(api::require(ptr != nullptr, "ptr is null"));
    PK_TRY(api::require(bytes > 0, "bytes is 0"));
    PK_ASSIGN(*window, communicator.register_window(ptr, bytes));
    return {};
  });
}

extern "C" pkcommResult_t pkcommWindowDeregister(pkcommComm_t comm, pkcommWindow_t window) {
  return api::boundary(comm,
                       [&](Communicator& communicator) { return communicator.deregister_window(window); });
}
