// Streams of the CUDA platform: the driver's own, thinly wrapped.
#include "platform/cuda/cuda_platform.hpp"

namespace pkcomm::cuda {

/// The caller's context, or the current device's where the caller has none. Calls by handle need one too.
Result<CurrentContext> CudaPlatform::any_context() {
  CUcontext context = nullptr;
  PK_TRY(check(driver_.cuCtxGetCurrent(&context), "cuCtxGetCurrent"));
  if (context == nullptr) {
    PK_ASSIGN(const int device, current_device());
    PK_TRY(open_device(device).status());
    PK_ASSIGN(Device* const opened, this->opened(device));
    context = opened->context();
  }
  return CurrentContext::enter(driver_, context);
}

Result<pkcommStream_t> CudaPlatform::create_stream() {
  PK_ASSIGN(const CurrentContext current, any_context());
  PK_ASSIGN(const RelaxedCapture relaxed, RelaxedCapture::enter(driver_));
  CUstream stream = nullptr;
  PK_TRY(check(driver_.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
               "cuStreamCreateWithPriority"));
  return stream;
}

Status CudaPlatform::destroy_stream(pkcommStream_t stream) {
  if (stream == nullptr) {
    return Status(pkcommInvalidArgument, "stream is null: the default stream is not destroyed");
  }
  PK_ASSIGN(const CurrentContext current, any_context());
  Status status = check(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize", {{"stream", stream}});
  Status destroyed = check(driver_.cuStreamDestroy(stream), "cuStreamDestroy", {{"stream", stream}});
  return status.ok() ? destroyed : status;
}

Status CudaPlatform::synchronize_stream(pkcommStream_t stream) {
  PK_ASSIGN(const CurrentContext current, any_context());
  return check(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize", {{"stream", stream}});
}

Status CudaPlatform::query_stream(pkcommStream_t stream) {
  PK_ASSIGN(const CurrentContext current, any_context());
  const CUresult result = driver_.cuStreamQuery(stream);
  if (result == CUDA_ERROR_NOT_READY) return Status(pkcommInProgress, "the stream has work left");
  return check(result, "cuStreamQuery", {{"stream", stream}});
}

Status CudaPlatform::enqueue_function(pkcommStream_t stream, void (*function)(void*), void* argument) {
  PK_ASSIGN(const CurrentContext current, any_context());
  return check(driver_.cuLaunchHostFunc(stream, function, argument), "cuLaunchHostFunc",
               {{"stream", stream}});
}

}  // namespace pkcomm::cuda
