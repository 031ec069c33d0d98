/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PKCOMM_PKCOMM_H_
#define PKCOMM_PKCOMM_H_

/**
 * pkcomm: collective communication among the GPUs of one NVLink/NVSwitch domain, or among the processes and threads of
 * one host. Whoever knows NCCL knows this interface; what differs is said where it differs.
 *
 * A program in six steps: one rank makes a unique id and hands it to the others by any means; every rank enters
 * pkcommCommInitRank; every rank enqueues the same collectives in the same order, each on a stream; the stream is
 * synchronised; pkcommCommFinalize and pkcommCommDestroy end it. The file is in that order: types, errors, start-up,
 * collectives, point-to-point, one-sided calls, symmetric memory, groups, the dispatcher's reasons, what is in force,
 * streams. It is one file because a user includes and reads one: contract and manual at once.
 *
 * Rules that hold for every function
 * - Counts are elements, `bytes` are bytes, offsets and pointers are bytes; sizes may exceed 2^31.
 * - The result of an asynchronous operation is on the stream; an error that happens there is found by
 *   pkcommCommGetAsyncError, and on the host platform by pkcommStreamSynchronize as well.
 * - A function that fails has enqueued nothing, kept nothing and changed nothing, unless it says otherwise.
 * - The text of the last failure is at pkcommGetLastError; it names the argument, its value and what is allowed.
 * - No call waits for ever: see pkcommConfig_t::timeout_ms and ::init_timeout_ms.
 * - The library writes nothing to standard output, installs no signal handler, and leaves the caller's affinity,
 *   locale, current device and signal mask as they were.
 */

#include <stddef.h>
#include <stdint.h>

#define PKCOMM_VERSION_MAJOR 0
#define PKCOMM_VERSION_MINOR 1
#define PKCOMM_VERSION_PATCH 0
/** major * 10000 + minor * 100 + patch of this header; compare with pkcommGetVersion. */
#define PKCOMM_VERSION (PKCOMM_VERSION_MAJOR * 10000 + PKCOMM_VERSION_MINOR * 100 + PKCOMM_VERSION_PATCH)

#define PKCOMM_API __attribute__((visibility("default")))
/** Value of an `int` option that the caller leaves to the environment and the library. */
#define PKCOMM_UNDEFINED (-2147483647 - 1)

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------ types */

/** What a call returns. The values are pinned for ever; 0 to 8 are NCCL's. */
typedef enum {
  pkcommSuccess = 0,
  pkcommCudaError = 1,       /**< a CUDA driver call failed; the text names it */
  pkcommSystemError = 2,     /**< a system call failed; the text names it and errno */
  pkcommInternalError = 3,   /**< a fault of pkcomm itself */
  pkcommInvalidArgument = 4, /**< an argument's value is not allowed: correct the call */
  pkcommInvalidUsage =
      5, /**< allowed arguments at the wrong time, or ranks that disagree: correct the program */
  pkcommRemoteError = 6, /**< a peer died, left or gave up: abort the communicator, make a new one */
  pkcommInProgress = 7,  /**< not an error: a non-blocking call has not finished, or a stream has work left */
  pkcommTimeout = 8,     /**< a deadline passed; the text says who was missing */
  pkcommUnsupported = 9, /**< this machine, platform or type has no way to do it */
  pkcommAborted = 10,    /**< the communicator was aborted, here or by a peer */
  pkcommOutOfMemory = 11, /**< memory, heap or descriptors are exhausted; the text gives need and limit */
  pkcommMismatch = 12     /**< ranks called different collectives; the text says who called what */
} pkcommResult_t;

/** Element types. The values 0 to 11 are NCCL's. */
typedef enum {
  pkcommInt8 = 0,
  pkcommUint8 = 1,
  pkcommInt32 = 2,
  pkcommUint32 = 3,
  pkcommInt64 = 4,
  pkcommUint64 = 5,
  pkcommFloat16 = 6,
  pkcommFloat32 = 7,
  pkcommFloat64 = 8,
  pkcommBfloat16 = 9,
  pkcommFloat8e4m3 = 10,
  pkcommFloat8e5m2 = 11
} pkcommDataType_t;
#define PKCOMM_DATA_TYPES 12

/**
 * Reduction operations. An element of the result is x0 op x1 op ... op x(W-1), in rank order from x0 itself, computed in
 * fp32 for 16- and 8-bit floats and otherwise in the element's own type, and rounded to the type once; fp8 saturates at
 * its largest finite value. So the bits do not depend on algorithm, message size or rank.
 * - Integers wrap around. For "any" over booleans kept as uint8 use pkcommMax: 256 ones sum to 0.
 * - pkcommMin, pkcommMax: a NaN loses against a number; all NaN gives NaN. -0.0 is less than +0.0.
 * - pkcommAvg divides the sum by the number of ranks, in that arithmetic; integers wrap first and then round toward
 *   zero (NCCL's rule). Where a float sum overflows although the average does not, the average is still right.
 * - Operations made by pkcommRedOpCreatePreMulSum have values from 5 up and belong to one communicator.
 */
typedef enum {
  pkcommSum = 0,
  pkcommProd = 1,
  pkcommMax = 2,
  pkcommMin = 3,
  pkcommAvg = 4,
  pkcommRedOpLimit = 0x7fffffff /**< not an operation: reserves the range of values */
} pkcommRedOp_t;
#define PKCOMM_BUILTIN_OPS 5

/** Where the scalar of a pre-multiplied sum lives. */
typedef enum {
  pkcommScalarHostImmediate = 0, /**< host memory, read before the call returns */
  pkcommScalarDevice = 1 /**< memory that the platform's streams can read, read when an operation runs */
} pkcommScalarResidence_t;

/** Collectives as the dispatcher names them. */
typedef enum {
  pkcommCollAllReduce = 0,
  pkcommCollReduce = 1,
  pkcommCollBroadcast = 2,
  pkcommCollAllGather = 3,
  pkcommCollReduceScatter = 4,
  pkcommCollAllToAll = 5,
  pkcommCollAllToAllV = 6,
  pkcommCollGather = 7,
  pkcommCollScatter = 8,
  pkcommCollSendRecv = 9,
  pkcommCollBarrier = 10
} pkcommCollective_t;
#define PKCOMM_COLLECTIVES 11

/** One rank's membership of a communicator. */
typedef struct pkcommComm* pkcommComm_t;
/** A registered range of symmetric memory. */
typedef struct pkcommWindow* pkcommWindow_t;
/** A cudaStream_t on CUDA (no cast needed); made by pkcommStreamCreate on the host platform. NULL is the default stream. */
typedef struct CUstream_st* pkcommStream_t;

/** Names one communicator before it exists; passed by value, copied to all ranks by any means. */
typedef struct {
  char internal[128];
} pkcommUniqueId;

/** Options of a communicator. Start from PKCOMM_CONFIG_INITIALIZER: `size` tells the library which fields exist. */
typedef struct {
  size_t size;  /**< sizeof(pkcommConfig_t) of the caller's header */
  int blocking; /**< 1: init, split and finalize return when done; 0: poll pkcommCommGetAsyncError */
  int min_ctas; /**< least CTAs of one operation, 1..64; equal on all ranks */
  int max_ctas; /**< most CTAs of one operation, 1..64; equal on all ranks; default on CUDA 16 */
  int device; /**< of this rank; default: the caller's current device. Host platform: any, default the rank */
  const char* name;   /**< shown in messages; copied; NULL: none */
  int64_t timeout_ms; /**< deadline of each wait of running work; 0: none; negative: PKCOMM_TIMEOUT */
  int64_t
      init_timeout_ms; /**< deadline of init, split and collective allocation; negative: PKCOMM_INIT_TIMEOUT */
} pkcommConfig_t;
#define PKCOMM_CONFIG_INITIALIZER                                                                         \
  {                                                                                                       \
    sizeof(pkcommConfig_t), PKCOMM_UNDEFINED, PKCOMM_UNDEFINED, PKCOMM_UNDEFINED, PKCOMM_UNDEFINED, NULL, \
        -1, -1                                                                                            \
  }

/** What a communicator found out about itself; filled by pkcommCommGetProperties. */
typedef struct {
  size_t size; /**< sizeof(pkcommCommProperties_t), set by the caller */
  int rank;
  int nranks;
  int device;
  int local_ranks;           /**< ranks in this process, the caller included */
  size_t staging_bytes;      /**< library-owned staging of one rank */
  size_t heap_bytes;         /**< symmetric heap of one rank in use */
  size_t heap_limit_bytes;   /**< the most it may grow to (PKCOMM_HEAP_SIZE) */
  int multicast;             /**< 1: multicast objects are in use; 0: not */
  char multicast_reason[96]; /**< why not, in words; empty where they are */
  char platform[16];         /**< "host" or "cuda" */
  char name[64];             /**< of the configuration, or empty */
} pkcommCommProperties_t;

/* ------------------------------------------------------------------------------------------------ errors */

/**
 * Gives the version of the loaded library, encoded as PKCOMM_VERSION.
 *
 * @param version Receives the code.
 * Threads: any.
 * Errors:  pkcommInvalidArgument  version is null.
 */
PKCOMM_API pkcommResult_t pkcommGetVersion(int* version);

/**
 * Describes a result in a few words, for instance "invalid argument".
 *
 * @param result Any value, known or not.
 * Ownership: the text is static and never null.
 * Threads:   any.
 */
PKCOMM_API const char* pkcommGetErrorString(pkcommResult_t result);

/**
 * Tells in full what went wrong last.
 *
 * @param comm NULL: the last failure of the calling thread. A communicator: its last failure from any thread,
 *             asynchronous ones included.
 * Ownership: the text belongs to the library and is valid until the calling thread's next pkcomm call; never null,
 *            empty where nothing failed.
 * Threads:   any.
 */
PKCOMM_API const char* pkcommGetLastError(pkcommComm_t comm);

/* ------------------------------------------------------------------------------------------------ start-up */

/**
 * Makes an id for one communicator and starts listening for its ranks. The process must live until all have joined.
 * An id serves once: a second communicator, at the same time or later, takes another id.
 *
 * @param id Receives the id.
 * Threads: any.
 * Errors:  pkcommInvalidArgument  id is null;
 *          pkcommInvalidUsage     PKCOMM_SOCKET_IFNAME names no interface (the text lists those found);
 *          pkcommSystemError      no listener could be made.
 */
PKCOMM_API pkcommResult_t pkcommGetUniqueId(pkcommUniqueId* id);

/**
 * Joins the communicator `id` as `rank` with the default configuration. See pkcommCommInitRankConfig.
 * Collective: all `nranks` ranks, each with its own `rank`; as processes, as threads of one process, or mixed.
 */
PKCOMM_API pkcommResult_t pkcommCommInitRank(pkcommComm_t* comm, int nranks, pkcommUniqueId id, int rank);

/**
 * Joins the communicator `id` as `rank`.
 * Collective: all `nranks` ranks, each with its own `rank`, the same `id`, `nranks`, CTA bounds and environment.
 * Within a group the work is done, for all communicators of the group at once, by the outermost pkcommGroupEnd.
 *
 * @param comm   Receives the handle; NULL after a failure. Non-blocking: valid at once, usable when
 *               pkcommCommGetAsyncError gives pkcommSuccess.
 * @param nranks 1 to 1024.
 * @param id     From pkcommGetUniqueId of one process.
 * @param rank   0 to nranks-1.
 * @param config Options, or NULL for all defaults; only `config->size` bytes are read, all are copied.
 * Ownership: the caller ends the handle by pkcommCommDestroy or pkcommCommAbort.
 * Threads:   any; one thread may not join two ranks of one communicator except within a group.
 * Errors:    pkcommInvalidArgument  comm null; nranks, rank or an option out of range; an id that is none;
 *            pkcommInvalidUsage     ranks disagree (two with the same rank, other nranks, version or configuration),
 *                                   or the id has served before;
 *            pkcommTimeout          some ranks did not come within init_timeout_ms: the text lists them;
 *            pkcommSystemError, pkcommOutOfMemory  the text gives the resource.
 */
PKCOMM_API pkcommResult_t pkcommCommInitRankConfig(pkcommComm_t* comm, int nranks, pkcommUniqueId id,
                                                   int rank, const pkcommConfig_t* config);

/**
 * Makes one communicator of `ndevices` ranks that all belong to the calling process; rank i uses devices[i].
 *
 * @param comms    Receives `ndevices` handles.
 * @param ndevices 1 to 1024.
 * @param devices  Device of each rank; NULL: 0, 1, 2, ... Ranks may share one.
 * Ownership: as pkcommCommInitRankConfig, each handle.
 * Threads:   any.
 * Errors:    as pkcommCommInitRankConfig; all handles are NULL then.
 */
PKCOMM_API pkcommResult_t pkcommCommInitAll(pkcommComm_t* comms, int ndevices, const int* devices);

/**
 * Makes communicators of the ranks of `comm` that give the same `color`.
 * Collective: all ranks of `comm`, in the same order relative to its other calls; waits for no stream.
 *
 * @param comm    A live communicator.
 * @param color   Group of this rank, 0 or more; PKCOMM_SPLIT_NOCOLOR: none, `*newcomm` is then NULL.
 * @param key     Orders the ranks of the new communicator; equal keys by old rank.
 * @param newcomm Receives the handle.
 * @param config  Options; NULL inherits those of `comm`.
 * Ownership: the new communicator is independent of `comm` and is destroyed on its own, before or after it.
 * Threads:   one caller at a time for one communicator.
 * Errors:    as pkcommCommInitRankConfig; pkcommInvalidArgument for a negative colour other than NOCOLOR.
 */
PKCOMM_API pkcommResult_t pkcommCommSplit(pkcommComm_t comm, int color, int key, pkcommComm_t* newcomm,
                                          const pkcommConfig_t* config);
#define PKCOMM_SPLIT_NOCOLOR (-1)

/**
 * Finishes the work of this rank: waits until everything that it enqueued on `comm` has run. Afterwards only queries,
 * pkcommCommDestroy and pkcommCommAbort are allowed.
 *
 * @param comm A live communicator.
 * Threads: one caller at a time for one communicator.
 * Errors:  pkcommInvalidArgument  comm is no live communicator; or the asynchronous error of its work.
 */
PKCOMM_API pkcommResult_t pkcommCommFinalize(pkcommComm_t comm);

/**
 * Ends this rank's membership and frees what belongs to it; finalizes first where the caller has not. Does not wait for
 * peers. Heap memory of `comm` must no longer be used. Every handle is checked against the list of live ones, so that a
 * second destroy and use after destroy are errors and not accidents.
 *
 * @param comm A communicator; NULL succeeds and does nothing.
 * Threads: any, but no other thread may be inside a call on `comm` except pkcommCommGetAsyncError and pkcommCommAbort.
 * Errors:  pkcommInvalidArgument  comm is no live communicator.
 */
PKCOMM_API pkcommResult_t pkcommCommDestroy(pkcommComm_t comm);

/**
 * Makes all running and future work of `comm` end with pkcommAborted, here and at the peers, and frees this rank's
 * membership as pkcommCommDestroy does. Waits for no peer.
 *
 * @param comm A communicator; NULL succeeds and does nothing.
 * Threads: any, at any time, also while other threads wait in calls on `comm`: those return pkcommAborted.
 * Errors:  pkcommInvalidArgument  comm is no live communicator.
 */
PKCOMM_API pkcommResult_t pkcommCommAbort(pkcommComm_t comm);

/**
 * Tells whether work of `comm` has failed, or a non-blocking call has finished.
 *
 * @param comm  A live communicator.
 * @param error Receives pkcommSuccess, pkcommInProgress, or the first failure; its text: pkcommGetLastError(comm).
 * Threads: any, at any time.
 * Errors:  pkcommInvalidArgument  error is null, or comm is no live communicator.
 */
PKCOMM_API pkcommResult_t pkcommCommGetAsyncError(pkcommComm_t comm, pkcommResult_t* error);

/** Gives the number of ranks. Threads: any. Errors: pkcommInvalidArgument  count is null, or comm no live communicator. */
PKCOMM_API pkcommResult_t pkcommCommCount(pkcommComm_t comm, int* count);
/** Gives the caller's rank. Threads: any. Errors: pkcommInvalidArgument  rank is null, or comm no live communicator. */
PKCOMM_API pkcommResult_t pkcommCommUserRank(pkcommComm_t comm, int* rank);
/** Gives the caller's device. Threads: any. Errors: pkcommInvalidArgument  device null, or comm no live communicator. */
PKCOMM_API pkcommResult_t pkcommCommDevice(pkcommComm_t comm, int* device);

/**
 * Fills `properties` with what this communicator found out.
 *
 * @param properties Its `size` is set by the caller; only that many bytes are written.
 * Threads: any.
 * Errors:  pkcommInvalidArgument  properties null or of size 0, or comm no live communicator.
 */
PKCOMM_API pkcommResult_t pkcommCommGetProperties(pkcommComm_t comm, pkcommCommProperties_t* properties);

/* ------------------------------------------------------------------------------------------------ collectives
 *
 * What the collectives have in common:
 * Collective: every rank of `comm` calls it, in the same order, with equal count, dtype, op and root. Calls that differ
 *             are found out and end in pkcommMismatch on every rank; nothing is written past a buffer. A root that
 *             waits for nobody may have finished by then and hears of it by the asynchronous error.
 * Windows:    either all ranks give symmetric heap memory at one offset, or none does, for the buffers that peers may
 *             touch: the input of all_reduce, reduce, reduce_scatter and gather, the output of all_reduce, broadcast,
 *             all_gather, all_to_all and scatter. That too is compared.
 * Ownership:  buffers are borrowed until the work has finished on `stream`.
 * Threads:    one caller at a time for one communicator; communicators are independent.
 * Stream:     returns once enqueued, never waits for the device; may be captured in a CUDA graph. One communicator's
 *             operations run in the order of their calls, on whatever streams.
 * Errors:     pkcommInvalidArgument  comm no live communicator, a null buffer with count > 0, a count whose bytes
 *                                    exceed 2^63, partial overlap of send and recv, unknown dtype or op, bad root;
 *             pkcommUnsupported      no algorithm for this dtype, op and topology;
 *             pkcommInvalidUsage     the communicator is not ready, or is finalized;
 *             pkcommAborted, pkcommRemoteError, pkcommTimeout, pkcommMismatch  its earlier work failed.
 *             Nothing was enqueued if the result is not pkcommSuccess.
 * Sizes:      count 0 on all ranks succeeds, enqueues nothing and needs no buffers.
 */

/**
 * Reduces `count` elements across all ranks; every rank receives the whole result.
 *
 * @param send   Input, `count` elements, aligned to the element size.
 * @param recv   Output, `count` elements. May equal `send`; any other overlap is an error.
 * @param count  Elements, not bytes.
 * @param dtype, op  Element type and operation.
 */
PKCOMM_API pkcommResult_t pkcommAllReduce(const void* send, void* recv, size_t count, pkcommDataType_t dtype,
                                          pkcommRedOp_t op, pkcommComm_t comm, pkcommStream_t stream);

/**
 * Reduces `count` elements across all ranks; `root` receives the result.
 *
 * @param send   Input, `count` elements.
 * @param recv   Output on `root`, `count` elements, may equal `send`; elsewhere ignored, may be NULL.
 */
PKCOMM_API pkcommResult_t pkcommReduce(const void* send, void* recv, size_t count, pkcommDataType_t dtype,
                                       pkcommRedOp_t op, int root, pkcommComm_t comm, pkcommStream_t stream);

/**
 * Copies `count` elements from `root` to every rank.
 *
 * @param send   Input on `root`, `count` elements; elsewhere ignored, may be NULL.
 * @param recv   Output on every rank, `count` elements; on `root` it may equal `send`.
 */
PKCOMM_API pkcommResult_t pkcommBroadcast(const void* send, void* recv, size_t count, pkcommDataType_t dtype,
                                          int root, pkcommComm_t comm, pkcommStream_t stream);

/**
 * Every rank receives the `send_count` elements of each rank, in rank order.
 *
 * @param send       Input, `send_count` elements. In place: send == recv + rank * send_count elements.
 * @param recv       Output, nranks * send_count elements.
 * @param send_count Elements that each rank contributes.
 */
PKCOMM_API pkcommResult_t pkcommAllGather(const void* send, void* recv, size_t send_count,
                                          pkcommDataType_t dtype, pkcommComm_t comm, pkcommStream_t stream);

/**
 * Reduces nranks * recv_count elements across all ranks; rank r receives block r of the result.
 *
 * @param send       Input, nranks * recv_count elements; unchanged, but for the caller's own block when in place.
 * @param recv       Output, `recv_count` elements. In place: recv == send + rank * recv_count elements.
 * @param recv_count Elements that each rank receives.
 */
PKCOMM_API pkcommResult_t pkcommReduceScatter(const void* send, void* recv, size_t recv_count,
                                              pkcommDataType_t dtype, pkcommRedOp_t op, pkcommComm_t comm,
                                              pkcommStream_t stream);

/**
 * Rank i's block j becomes rank j's block i.
 *
 * @param send  Input, nranks * count elements: block j goes to rank j.
 * @param recv  Output, nranks * count elements: block i comes from rank i. May not overlap `send`.
 * @param count Elements of one block.
 */
PKCOMM_API pkcommResult_t pkcommAllToAll(const void* send, void* recv, size_t count, pkcommDataType_t dtype,
                                         pkcommComm_t comm, pkcommStream_t stream);

/**
 * As pkcommAllToAll, with a count and a displacement for each pair. Always runs, whatever the counts.
 *
 * @param send         Input; block j starts at element send_displs[j] and has send_counts[j] elements.
 * @param recv         Output; block i starts at element recv_displs[i] and has recv_counts[i] elements, which must be
 *                     what rank i sends here. May not overlap `send`.
 * @param send_counts, send_displs, recv_counts, recv_displs  Host arrays of nranks entries, read before return.
 */
PKCOMM_API pkcommResult_t pkcommAllToAllV(const void* send, const size_t* send_counts,
                                          const size_t* send_displs, void* recv, const size_t* recv_counts,
                                          const size_t* recv_displs, pkcommDataType_t dtype,
                                          pkcommComm_t comm, pkcommStream_t stream);

/**
 * `root` receives the `send_count` elements of each rank, in rank order.
 *
 * @param send Input, `send_count` elements; on `root` it may be recv + root * send_count elements.
 * @param recv Output on `root`, nranks * send_count elements; elsewhere ignored, may be NULL.
 */
PKCOMM_API pkcommResult_t pkcommGather(const void* send, void* recv, size_t send_count,
                                       pkcommDataType_t dtype, int root, pkcommComm_t comm,
                                       pkcommStream_t stream);

/**
 * Rank r receives block r of `root`'s input.
 *
 * @param send Input on `root`, nranks * recv_count elements; elsewhere ignored, may be NULL.
 * @param recv Output, `recv_count` elements; on `root` it may be send + root * recv_count elements.
 */
PKCOMM_API pkcommResult_t pkcommScatter(const void* send, void* recv, size_t recv_count,
                                        pkcommDataType_t dtype, int root, pkcommComm_t comm,
                                        pkcommStream_t stream);

/** Work enqueued behind it starts on no rank before every rank's stream has arrived at it. */
PKCOMM_API pkcommResult_t pkcommBarrier(pkcommComm_t comm, pkcommStream_t stream);

/**
 * Makes an operation that multiplies each element of this rank by `*scalar` before summing. Ranks may have different
 * scalars, and different handles.
 *
 * @param op        Receives the handle, valid for `comm` only.
 * @param scalar    One element of type `dtype`.
 * @param dtype     The type that collectives with this operation must have.
 * @param residence Whether the scalar is read now, or when an operation runs.
 * @param comm      A live communicator.
 * Ownership: a device scalar is borrowed until the operation is destroyed and all its work has finished.
 * Threads:   one caller at a time for one communicator.
 * Errors:    pkcommInvalidArgument  a null pointer, unknown dtype or residence, comm no live communicator.
 */
PKCOMM_API pkcommResult_t pkcommRedOpCreatePreMulSum(pkcommRedOp_t* op, const void* scalar,
                                                     pkcommDataType_t dtype,
                                                     pkcommScalarResidence_t residence, pkcommComm_t comm);

/** Ends an operation; work already enqueued with it is not affected. Errors: pkcommInvalidArgument  unknown op. */
PKCOMM_API pkcommResult_t pkcommRedOpDestroy(pkcommRedOp_t op, pkcommComm_t comm);

/* ------------------------------------------------------------------------------------------------ point to point */

/**
 * Sends `count` elements to `peer`, which must call pkcommRecv with the same number of bytes. Messages of one ordered
 * pair match in the order of their calls. A send has finished on its stream only when the peer has received all of it,
 * whatever its size: two ranks that both send first and receive next, outside a group, wait for each other until the
 * deadline. Within a group no transfer waits for another; sends to oneself need a group with the matching receive.
 *
 * @param send  `count` elements.
 * @param peer  0 to nranks-1.
 * Collective: no. Ownership, threads, stream and errors: as the collectives. Bytes that differ between the two ends are
 * pkcommMismatch on both.
 */
PKCOMM_API pkcommResult_t pkcommSend(const void* send, size_t count, pkcommDataType_t dtype, int peer,
                                     pkcommComm_t comm, pkcommStream_t stream);

/** Receives `count` elements from `peer` into `recv`; see pkcommSend. */
PKCOMM_API pkcommResult_t pkcommRecv(void* recv, size_t count, pkcommDataType_t dtype, int peer,
                                     pkcommComm_t comm, pkcommStream_t stream);

/* ------------------------------------------------------------------------------------------------ one-sided */

/** Signals of one ordered pair of ranks: indices 0 to PKCOMM_SIGNALS-1. */
#define PKCOMM_SIGNALS 16

/**
 * Writes `bytes` bytes into the symmetric heap of `peer`, which takes no part. The bytes are visible at the peer to work
 * behind a pkcommWaitSignal that received a pkcommSignal enqueued behind this put on the same stream.
 *
 * @param src   Any memory of this rank.
 * @param dst   Address in this rank's own symmetric heap; the bytes go to the same offset at `peer`.
 * @param peer  0 to nranks-1; the caller itself is allowed.
 * Ownership: src is borrowed until the work has finished on `stream`.
 * Threads:   one caller at a time for one communicator.
 * Stream:    returns once enqueued.
 * Errors:    pkcommInvalidArgument  [dst, dst+bytes) is not within one block of the heap; bad peer; null pointer.
 */
PKCOMM_API pkcommResult_t pkcommPut(const void* src, void* dst, size_t bytes, int peer, pkcommComm_t comm,
                                    pkcommStream_t stream);

/**
 * Adds one arrival to signal `index` of the pair (this rank, `peer`), after everything before it on `stream`.
 *
 * @param peer   Receiver of the arrival. @param index 0 to PKCOMM_SIGNALS-1.
 * Threads, stream, errors: as pkcommPut.
 */
PKCOMM_API pkcommResult_t pkcommSignal(int peer, int index, pkcommComm_t comm, pkcommStream_t stream);

/**
 * Holds `stream` until `arrivals` arrivals more than already waited for have come from `peer` on signal `index`.
 *
 * @param peer     Sender of the arrivals. @param index 0 to PKCOMM_SIGNALS-1.
 * @param arrivals How many; each arrival satisfies one wait once.
 * Threads, stream, errors: as pkcommPut.
 */
PKCOMM_API pkcommResult_t pkcommWaitSignal(int peer, int index, uint64_t arrivals, pkcommComm_t comm,
                                           pkcommStream_t stream);

/* ------------------------------------------------------------------------------------------------ symmetric memory */

/**
 * Allocates `bytes` of symmetric memory: the same offset on every rank, readable and writable by every rank, zeroed
 * when its pages are first used. Collectives on it move data without staging.
 * Collective: all ranks, in the same order, with equal `bytes`; all succeed or all fail. Waits for the peers' calls.
 *
 * @param comm  A live communicator.
 * @param bytes 0 gives NULL and succeeds.
 * @param ptr   Receives the caller's own address, aligned to 256 bytes.
 * Ownership: freed by pkcommHeapFree or with the communicator.
 * Threads:   one caller at a time for one communicator.
 * Errors:    pkcommInvalidUsage  sizes differ between ranks (the text gives both);
 *            pkcommOutOfMemory   beyond PKCOMM_HEAP_SIZE on some rank (the text gives limit, use and need);
 *            pkcommTimeout       a rank did not call within init_timeout_ms.
 */
PKCOMM_API pkcommResult_t pkcommHeapAlloc(pkcommComm_t comm, size_t bytes, void** ptr);

/**
 * Frees a block of the heap.
 * Collective: all ranks, in the same order relative to their other heap calls; compared by the next pkcommHeapAlloc.
 * Does not wait for peers: work that uses the block must have finished on all ranks.
 *
 * @param ptr What pkcommHeapAlloc gave; NULL succeeds and does nothing.
 * Errors: pkcommInvalidArgument  no block starts at ptr (freed before, a middle pointer, foreign memory).
 */
PKCOMM_API pkcommResult_t pkcommHeapFree(pkcommComm_t comm, void* ptr);

/**
 * Gives the address, valid in the caller's process, of the bytes at `peer` that correspond to `ptr`.
 *
 * @param ptr  Anywhere within a block of the caller's own heap.
 * @param peer 0 to nranks-1.
 * @param out  Receives the address.
 * Threads: any.
 * Errors:  pkcommInvalidArgument  ptr is in no live block; bad peer; null pointer.
 */
PKCOMM_API pkcommResult_t pkcommHeapPeerPointer(pkcommComm_t comm, const void* ptr, int peer, void** out);

/** What a kernel of the caller's needs of a communicator; given by value. For the functions of pkcomm/device.cuh. */
typedef struct {
  size_t size; /**< sizeof(pkcommDeviceView_t), set by the caller */
  int rank;
  int nranks;
  void* base; /**< rank r's part of the symmetric memory begins at base + r * stride */
  uint64_t stride;
  uint64_t
      signals; /**< offsets within a part: arrivals of signals, those waited for, the word of peers that gave up */
  uint64_t waited;
  uint64_t poison;
  const uint64_t* verdict; /**< not 0 once the host has ended all waits */
  uint64_t deadline_ns;    /**< of one wait; 0: none */
} pkcommDeviceView_t;

/**
 * Fills `view`, up to view->size, for kernels on the communicator's device. It is valid as long as the communicator, whose
 * end (destroy, abort) waits from now on until nothing runs on the device any more; an abort ends their waits first.
 *
 * Threads: any.
 * Errors:  pkcommUnsupported      on the host platform, which has no kernels;
 *          pkcommInvalidArgument  view null, or its size smaller than the first field.
 */
PKCOMM_API pkcommResult_t pkcommCommGetDeviceView(pkcommComm_t comm, pkcommDeviceView_t* view);

/**
 * Gives the multicast address of the bytes that correspond to `ptr` on all ranks, for `multimem` instructions.
 *
 * Threads: any.
 * Errors:  pkcommUnsupported      multicast is off; the text says why. Always so on the host platform;
 *          pkcommInvalidArgument  as pkcommHeapPeerPointer.
 */
PKCOMM_API pkcommResult_t pkcommHeapMulticastPointer(pkcommComm_t comm, const void* ptr, void** out);

/**
 * Makes [ptr, ptr+bytes) a window: memory that collectives use without staging. Heap memory is one by birth and may be
 * registered as well. This version shares no other memory between ranks and says so.
 * Collective: all ranks, in the same order, with equal `bytes`; all succeed or all fail.
 *
 * @param window Receives the handle; NULL after a failure, never after success.
 * Ownership: pkcommWindowDeregister ends it; the memory must outlive it.
 * Threads:   one caller at a time for one communicator.
 * Errors:    pkcommUnsupported      memory that this version cannot share;
 *            pkcommInvalidUsage     sizes or offsets differ between ranks (the text gives both);
 *            pkcommInvalidArgument  null pointer, bytes 0.
 */
PKCOMM_API pkcommResult_t pkcommWindowRegister(pkcommComm_t comm, void* ptr, size_t bytes,
                                               pkcommWindow_t* window);

/** Ends a window. Errors: pkcommInvalidArgument  window is none of `comm`, or was ended before. */
PKCOMM_API pkcommResult_t pkcommWindowDeregister(pkcommComm_t comm, pkcommWindow_t window);

/* ------------------------------------------------------------------------------------------------ groups */

/**
 * Opens a group on the calling thread; groups nest. Calls up to the outermost pkcommGroupEnd are collected and then
 * started together, so that sends and receives, and the ranks of one thread, do not wait for each other.
 * Threads: any; a group belongs to its thread.
 */
PKCOMM_API pkcommResult_t pkcommGroupStart(void);

/**
 * Closes a group; the outermost starts what was collected.
 *
 * Errors: pkcommInvalidUsage  no group is open; otherwise the first error of a collected call: the group is then
 *         dropped whole and nothing of it was enqueued.
 */
PKCOMM_API pkcommResult_t pkcommGroupEnd(void);

/* ------------------------------------------------------------------------------------------------ the dispatcher's reasons */

/** A collective as the dispatcher sees it. */
typedef struct {
  size_t size; /**< sizeof(pkcommExplainRequest_t) */
  pkcommCollective_t collective;
  size_t count; /**< as given to the collective */
  pkcommDataType_t dtype;
  pkcommRedOp_t op;             /**< ignored where nothing is reduced; from 5 up: a pre-multiplied sum */
  int nranks;                   /**< ignored where `comm` is given */
  int send_window, recv_window; /**< 1: symmetric memory on all ranks */
  const char* topology; /**< file of a recorded machine, or NULL: this one; ignored where `comm` is given */
} pkcommExplainRequest_t;
#define PKCOMM_EXPLAIN_REQUEST_INITIALIZER \
  { sizeof(pkcommExplainRequest_t), pkcommCollAllReduce, 0, pkcommFloat32, pkcommSum, 2, 0, 0, NULL }

/** One way to do it. */
typedef struct {
  char algorithm[24];
  char mechanism[24];
  int ctas, threads;
  size_t chunk_bytes;
  double predicted_us; /**< negative where the algorithm is not legal here */
  char reason[120];    /**< why it was chosen, or why not */
} pkcommCandidate_t;
#define PKCOMM_MAX_CANDIDATES 16

/** All ways, and which was chosen. */
typedef struct {
  size_t size;    /**< sizeof(pkcommExplanation_t), set by the caller */
  int candidates; /**< entries used */
  int chosen;     /**< index of the plan; -1: none is legal, or nothing is to be done */
  pkcommCandidate_t candidate[PKCOMM_MAX_CANDIDATES];
} pkcommExplanation_t;

/**
 * Tells how a collective would be done, and why: the dispatcher is a pure function, so this is what a call would do.
 *
 * @param request     What would be called.
 * @param comm        The communicator that would do it, or NULL: the machine of request->topology, or this one.
 * @param explanation Receives the candidates; may be NULL.
 * @param text        Receives the same as a table in words, cut at `capacity` and always terminated; may be NULL.
 * @param capacity    Bytes at `text`.
 * Threads: any.
 * Errors:  pkcommInvalidArgument  a request that no call could have; an unreadable topology (the text says where).
 */
PKCOMM_API pkcommResult_t pkcommExplain(const pkcommExplainRequest_t* request, pkcommComm_t comm,
                                        pkcommExplanation_t* explanation, char* text, size_t capacity);

/* ------------------------------------------------------------------------------------------------ what is in force */

/** What communicators made now would find; filled by pkcommGetPlatformProperties. */
typedef struct {
  size_t size;               /**< sizeof(pkcommPlatformProperties_t), set by the caller */
  char platform[16];         /**< "host" or "cuda" */
  int multicast;             /**< 1: multicast objects would be used; 0: not */
  char multicast_reason[96]; /**< why not, in words; empty where they would be */
  char multicast_switch[64]; /**< the variable that forbids them, as NAME=value; empty: none does */
  size_t granularity_bytes;  /**< symmetric memory is made in multiples of it */
  char tuning[64];           /**< name of the tuning table in use */
  char tuning_note[256];     /**< what a reader of its predictions should know; may be empty */
} pkcommPlatformProperties_t;

/**
 * Tells what the library would run on, as the environment now says, without making a communicator. On CUDA it asks the
 * current device, and makes it ready as init would.
 *
 * @param properties Receives them; only `properties->size` bytes are written.
 * Threads: any.
 * Errors:  pkcommInvalidArgument  properties is null, or its size is not set;
 *          pkcommUnsupported      PKCOMM_PLATFORM names a platform that is not here (the text says why).
 */
PKCOMM_API pkcommResult_t pkcommGetPlatformProperties(pkcommPlatformProperties_t* properties);

/** Where the value of a variable comes from. */
typedef enum {
  pkcommOriginDefault = 0,    /**< the library: the variable is unset, or what it is set to was refused */
  pkcommOriginEnvironment = 1 /**< the environment of the process */
} pkcommOrigin_t;

/** One PKCOMM_* variable; filled by pkcommGetVariable. */
typedef struct {
  size_t size;           /**< sizeof(pkcommVariable_t), set by the caller */
  const char* name;      /**< "PKCOMM_STAGING" */
  const char* meaning;   /**< what it is for, in a line */
  const char* otherwise; /**< what holds where it is unset; empty: see `meaning` */
  pkcommOrigin_t origin;
  char value[1024];  /**< what holds now, as one would write it; cut where it is longer */
  char allowed[128]; /**< what may be written */
  char refused[256]; /**< why what the environment says does not hold; empty where it does, or says nothing */
} pkcommVariable_t;

/**
 * Gives the number of variables that the library reads.
 *
 * @param count Receives the number.
 * Threads: any.
 * Errors:  pkcommInvalidArgument  count is null.
 */
PKCOMM_API pkcommResult_t pkcommGetVariableCount(int* count);

/**
 * Tells what a variable means and what holds for it now: for the next communicator, not for those that exist.
 *
 * @param index    0 to the number of variables less one; the order is that of their documentation.
 * @param variable Receives the answer; only `variable->size` bytes are written.
 * Ownership: the pointers in the answer are static texts.
 * Threads:   any, while nobody changes the environment.
 * Errors:    pkcommInvalidArgument  index out of range, variable is null, or its size is not set.
 */
PKCOMM_API pkcommResult_t pkcommGetVariable(int index, pkcommVariable_t* variable);

/* ------------------------------------------------------------------------------------------------ streams
 *
 * On CUDA these make and use the driver's streams, and any other cudaStream_t serves as well: they are here so that one
 * program runs on both platforms. On the host platform they are the only ones: each runs its work in order; whoever
 * synchronises a stream runs its work on the calling thread, and a background thread takes over work that nobody waits
 * for, within about a millisecond. NULL names the default stream: on CUDA of the current device (the legacy one), on
 * the host of a communicator's device.
 */

/**
 * Makes a stream; on CUDA on the current device, not synchronising with the legacy default stream.
 * Threads: any. Errors: pkcommInvalidArgument  stream is null; pkcommOutOfMemory.
 */
PKCOMM_API pkcommResult_t pkcommStreamCreate(pkcommStream_t* stream);

/**
 * Frees `stream`; on the host platform waits for its work before.
 * Threads: no other thread may use the stream. Errors: pkcommInvalidArgument  not a live stream (NULL included).
 */
PKCOMM_API pkcommResult_t pkcommStreamDestroy(pkcommStream_t stream);

/**
 * Waits until everything enqueued before this call has run.
 *
 * @param stream Host platform: NULL names the default streams on which the calling thread has put work.
 * Threads: any. Must not be called from a function that runs on a stream.
 * Errors:  pkcommInvalidArgument  not a live stream. On the host platform also the first failure of its work since the
 *          last synchronisation, which pkcommCommGetAsyncError keeps as well; on CUDA that alone tells of failures.
 */
PKCOMM_API pkcommResult_t pkcommStreamSynchronize(pkcommStream_t stream);

/**
 * pkcommSuccess where all work has run, pkcommInProgress where not; never waits. NULL as in pkcommStreamSynchronize.
 * Threads: any. Errors: pkcommInvalidArgument  not a live stream.
 */
PKCOMM_API pkcommResult_t pkcommStreamQuery(pkcommStream_t stream);

/**
 * Enqueues a function: it is called with `argument` when everything before it on the stream has run.
 *
 * @param stream   Host platform: NULL names the default stream of device 0.
 * @param function Must not call pkcomm, and must return.
 * Threads: any. Errors: pkcommInvalidArgument  function is null, or not a live stream.
 */
PKCOMM_API pkcommResult_t pkcommStreamEnqueue(pkcommStream_t stream, void (*function)(void*), void* argument);

#ifdef __cplusplus
}
#endif

#endif
