// Sends, receives, one-sided calls, groups.
#include "api/boundary.hpp"
#include "comm/communicator.hpp"
#include "pkcomm/pkcomm.h"

using namespace pkcomm;

extern "C" pkcommResult_t pkcommSend(const void* send, size_t count, pkcommDataType_t dtype, int peer,
                                     pkcommComm_t comm, pkcommStream_t stream) {
  return api::boundary(comm, [&](Communicator& communicator) {
    return communicator.transfer(true, const_cast<void*>(send), count, dtype, peer, stream);
  });
}

extern "C" pkcommResult_t pkcommRecv(void* recv, size_t count, pkcommDataType_t dtype, int peer,
                                     pkcommComm_t comm, pkcommStream_t stream) {
  return api::boundary(comm, [&](Communicator& communicator) {
    return communicator.transfer(false, recv, count, dtype, peer, stream);
  });
}

extern "C" pkcommResult_t pkcommPut(const void* src, void* dst, size_t bytes, int peer, pkcommComm_t comm,
                                    pkcommStream_t stream) {
  return api::boundary(
      comm, [&](Communicator& communicator) { return communicator.put(src, dst, bytes, peer, stream); });
}

extern "C" pkcommResult_t pkcommSignal(int peer, int index, pkcommComm_t comm, pkcommStream_t stream) {
  return api::boundary(comm,
                       [&](Communicator& communicator) { return communicator.signal(peer, index, stream); });
}

extern "C" pkcommResult_t pkcommWaitSignal(int peer, int index, uint64_t arrivals, pkcommComm_t comm,
                                           pkcommStream_t stream) {
  return api::boundary(comm, [&](Communicator& communicator) {
    return communicator.wait_signal(peer, index, arrivals, stream);
  });
}

extern "C" pkcommResult_t pkcommGroupStart(void) {
  return api::boundary([]() -> Status {
    Group::start();
    return {};
  });
}

extern "C" pkcommResult_t pkcommGroupEnd(void) {
  return api::boundary([] { return Group::end(); });
}
