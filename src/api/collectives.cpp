// The collectives and their operations.
#include "api/boundary.hpp"
#include "comm/communicator.hpp"
#include "pkcomm/pkcomm.h"

using namespace pkcomm;

namespace {

pkcommResult_t run(pkcommComm_t comm, const Call& call) {
  return api::boundary(comm, [&](Communicator& communicator) { return communicator.collective(call); });
}

}  // namespace

extern "C" pkcommResult_t pkcommAllReduce(const void* send, void* recv, size_t count, pkcommDataType_t dtype,
                                          pkcommRedOp_t op, pkcommComm_t comm, pkcommStream_t stream) {
  return run(comm, {Collective::kAllReduce, send, recv, count, dtype, op, 0, stream});
}

extern "C" pkcommResult_t pkcommReduce(const void* send, void* recv, size_t count, pkcommDataType_t dtype,
                                       pkcommRedOp_t op, int root, pkcommComm_t comm, pkcommStream_t stream) {
  return run(comm, {Collective::kReduce, send, recv, count, dtype, op, root, stream});
}

extern "C" pkcommResult_t pkcommBroadcast(const void* send, void* recv, size_t count, pkcommDataType_t dtype,
                                          int root, pkcommComm_t comm, pkcommStream_t stream) {
  return run(comm, {Collective::kBroadcast, send, recv, count, dtype, pkcommSum, root, stream});
}

extern "C" pkcommResult_t pkcommAllGather(const void* send, void* recv, size_t send_count,
                                          pkcommDataType_t dtype, pkcommComm_t comm, pkcommStream_t stream) {
  return run(comm, {Collective::kAllGather, send, recv, send_count, dtype, pkcommSum, 0, stream});
}

extern "C" pkcommResult_t pkcommReduceScatter(const void* send, void* recv, size_t recv_count,
                                              pkcommDataType_t dtype, pkcommRedOp_t op, pkcommComm_t comm,
                                              pkcommStream_t stream) {
  return run(comm, {Collective::kReduceScatter, send, recv, recv_count, dtype, op, 0, stream});
}

extern "C" pkcommResult_t pkcommAllToAll(const void* send, void* recv, size_t count, pkcommDataType_t dtype,
                                         pkcommComm_t comm, pkcommStream_t stream) {
  return run(comm, {Collective::kAllToAll, send, recv, count, dtype, pkcommSum, 0, stream});
}

extern "C" pkcommResult_t pkcommAllToAllV(const void* send, const size_t* send_counts,
                                          const size_t* send_displs, void* recv, const size_t* recv_counts,
                                          const size_t* recv_displs, pkcommDataType_t dtype,
                                          pkcommComm_t comm, pkcommStream_t stream) {
  return api::boundary(comm, [&](Communicator& communicator) -> Status {
    PK_TRY(api::require(send_counts && send_displs && recv_counts && recv_displs,
                        "a count or displacement array is null"));
    return communicator.all_to_all_v({Collective::kAllToAllV, send, recv, 0, dtype, pkcommSum, 0, stream},
                                     {send_counts, send_displs, recv_counts, recv_displs});
  });
}

extern "C" pkcommResult_t pkcommGather(const void* send, void* recv, size_t send_count,
                                       pkcommDataType_t dtype, int root, pkcommComm_t comm,
                                       pkcommStream_t stream) {
  return run(comm, {Collective::kGather, send, recv, send_count, dtype, pkcommSum, root, stream});
}

extern "C" pkcommResult_t pkcommScatter(const void* send, void* recv, size_t recv_count,
                                        pkcommDataType_t dtype, int root, pkcommComm_t comm,
                                        pkcommStream_t stream) {
  return run(comm, {Collective::kScatter, send, recv, recv_count, dtype, pkcommSum, root, stream});
}

extern "C" pkcommResult_t pkcommBarrier(pkcommComm_t comm, pkcommStream_t stream) {
  return run(comm, {Collective::kBarrier, nullptr, nullptr, 0, pkcommUint8, pkcommSum, 0, stream});
}

extern "C" pkcommResult_t pkcommRedOpCreatePreMulSum(pkcommRedOp_t* op, const void* scalar,
                                                     pkcommDataType_t dtype,
                                                     pkcommScalarResidence_t residence, pkcommComm_t comm) {
  return api::boundary(comm, [&](Communicator& communicator) -> Status {
    PK_TRY(api::require(op != nullptr, "op is null"));
    PK_TRY(api::require(scalar != nullptr, "scalar is null"));
    PK_ASSIGN(*op, communicator.create_premul_sum(scalar, dtype, residence));
    return {};
  });
}

extern "C" pkcommResult_t pkcommRedOpDestroy(pkcommRedOp_t op, pkcommComm_t comm) {
  return api::boundary(comm, [&](Communicator& communicator) { return communicator.destroy_op(op); });
}
