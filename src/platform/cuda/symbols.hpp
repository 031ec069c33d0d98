// The list of the driver's functions that the library uses, once: driver.hpp makes the table of it, driver.cpp the
// look-ups, the tests their own driver.
//
// X(name, version, need): `version` is the CUDA release in which the function got the signature that we call. It is what
// we ask the driver for, so neither a newer driver nor a newer header changes what comes back, and it names the type in
// <cudaTypedefs.h>. A driver that lacks a kRequired one is not used; a kOptional one is null there.
//
// Nothing of multicast objects is here, on purpose: who has switched them off may rely on no such function being as much
// as looked up.
#pragma once

#define PK_CUDA_DRIVER_SYMBOLS(X)                        \
  X(cuGetErrorName, 6000, kRequired)                     \
  X(cuGetErrorString, 6000, kRequired)                   \
  X(cuInit, 2000, kRequired)                             \
  X(cuDriverGetVersion, 2020, kRequired)                 \
  X(cuDeviceGet, 2000, kRequired)                        \
  X(cuDeviceGetCount, 2000, kRequired)                   \
  X(cuDeviceGetName, 2000, kRequired)                    \
  X(cuDeviceGetUuid, 11040, kRequired)                   \
  X(cuDeviceGetAttribute, 2000, kRequired)               \
  X(cuDeviceGetPCIBusId, 4010, kRequired)                \
  X(cuDeviceCanAccessPeer, 4000, kRequired)              \
  X(cuDevicePrimaryCtxRetain, 7000, kRequired)           \
  X(cuDevicePrimaryCtxRelease, 11000, kRequired)         \
  X(cuCtxGetCurrent, 4000, kRequired)                    \
  X(cuCtxSetCurrent, 4000, kRequired)                    \
  X(cuCtxPushCurrent, 4000, kRequired)                   \
  X(cuCtxPopCurrent, 4000, kRequired)                    \
  X(cuCtxGetDevice, 2000, kRequired)                     \
  X(cuCtxSynchronize, 2000, kRequired)                   \
  X(cuMemGetAllocationGranularity, 10020, kRequired)     \
  X(cuMemCreate, 10020, kRequired)                       \
  X(cuMemRelease, 10020, kRequired)                      \
  X(cuMemExportToShareableHandle, 10020, kRequired)      \
  X(cuMemImportFromShareableHandle, 10020, kRequired)    \
  X(cuMemAddressReserve, 10020, kRequired)               \
  X(cuMemAddressFree, 10020, kRequired)                  \
  X(cuMemMap, 10020, kRequired)                          \
  X(cuMemUnmap, 10020, kRequired)                        \
  X(cuMemSetAccess, 10020, kRequired)                    \
  X(cuMemsetD8, 3020, kRequired)                         \
  X(cuMemsetD8Async, 3020, kRequired)                    \
  X(cuMemcpyHtoD, 3020, kRequired)                       \
  X(cuMemcpyHtoDAsync, 3020, kRequired)                  \
  X(cuMemcpyDtoH, 3020, kRequired)                       \
  X(cuMemcpyDtoHAsync, 3020, kRequired)                  \
  X(cuMemcpyDtoDAsync, 3020, kRequired)                  \
  X(cuMemHostAlloc, 2020, kRequired)                     \
  X(cuMemFreeHost, 2000, kRequired)                      \
  X(cuMemHostGetDevicePointer, 3020, kRequired)          \
  X(cuPointerGetAttributes, 7000, kRequired)             \
  X(cuStreamCreateWithPriority, 5050, kRequired)         \
  X(cuStreamDestroy, 4000, kRequired)                    \
  X(cuStreamSynchronize, 2000, kRequired)                \
  X(cuStreamQuery, 2000, kRequired)                      \
  X(cuStreamIsCapturing, 10000, kRequired)               \
  X(cuStreamGetCaptureInfo, 11030, kRequired)            \
  X(cuStreamGetId, 12000, kRequired)                     \
  X(cuStreamGetCtx, 9020, kRequired)                     \
  X(cuStreamWaitEvent, 3020, kRequired)                  \
  X(cuThreadExchangeStreamCaptureMode, 10010, kRequired) \
  X(cuLaunchHostFunc, 10000, kRequired)                  \
  X(cuLaunchKernelEx, 11060, kRequired)                  \
  X(cuEventCreate, 2000, kRequired)                      \
  X(cuEventDestroy, 4000, kRequired)                     \
  X(cuEventRecord, 2000, kRequired)                      \
  X(cuEventQuery, 2000, kRequired)                       \
  X(cuEventSynchronize, 2000, kRequired)                 \
  X(cuModuleLoadData, 2000, kRequired)                   \
  X(cuModuleUnload, 2000, kRequired)                     \
  X(cuModuleGetFunction, 2000, kRequired)                \
  X(cuFuncLoad, 12040, kOptional)                        \
  X(cuFuncGetAttribute, 2020, kRequired)                 \
  X(cuFuncSetAttribute, 9000, kRequired)
