// Streams of the CUDA platform: the driver's own, thinly wrapped.
#include "platform/cuda/cuda_platform.hpp"

namespace pkcomm::cuda {
namespace {

/// A handle that names no live stream is the caller's fault, unlike anything else that the driver may say.
Status check_stream(CUresult result, const char* call, CUstream stream) {
  Status status = check(result, call, {{"stream", stream}});
  return result == CUDA_ERROR_INVALID_HANDLE ? Status(pkcommInvalidArgument, status.message()) : status;
}

}  // namespace

/// The caller's context, or device 0's where the caller has none: that is the current device then. Calls by handle need
/// one too.
Result<CurrentContext> CudaPlatform::any_context() {
  CUcontext context = nullptr;
  PK_TRY(check(driver_.cuCtxGetCurrent(&context), "cuCtxGetCurrent"));
  if (context == nullptr) {
    PK_TRY(open_device(0).status());
    PK_ASSIGN(Device* const opened, this->opened(0));
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
    return Status(pkcommInvalidArgument, "stream is null, and the default stream is not to be destroyed");
  }
  PK_ASSIGN(const CurrentContext current, any_context());
  return check_stream(driver_.cuStreamDestroy(stream), "cuStreamDestroy", stream);
}

Status CudaPlatform::synchronize_stream(pkcommStream_t stream) {
  PK_ASSIGN(const CurrentContext current, any_context());
  return check_stream(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize", stream);
}

Status CudaPlatform::query_stream(pkcommStream_t stream) {
  PK_ASSIGN(const CurrentContext current, any_context());
  const CUresult result = driver_.cuStreamQuery(stream);
  if (result == CUDA_ERROR_NOT_READY) return Status(pkcommInProgress, "the stream has work left");
  return check_stream(result, "cuStreamQuery", stream);
}

Status CudaPlatform::enqueue_function(pkcommStream_t stream, void (*function)(void*), void* argument) {
  PK_ASSIGN(const CurrentContext current, any_context());
  return check_stream(driver_.cuLaunchHostFunc(stream, function, argument), "cuLaunchHostFunc", stream);
}

}  // namespace pkcomm::cuda
