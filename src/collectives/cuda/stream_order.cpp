// The event is recorded when the stream changes, not behind every launch: a recorded event between two kernels would keep
// the second from being launched early.
#include "collectives/cuda/stream_order.hpp"

#include <utility>

#include "base/log.hpp"

namespace pkcomm::cuda {

Status StreamOrder::create(const Driver& driver) {
  PK_TRY(check(driver.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
  driver_ = &driver;
  return {};
}

void StreamOrder::destroy() {
  if (driver_ != nullptr) log_if_failed(check(driver_->cuEventDestroy(event_), "cuEventDestroy"));
  driver_ = nullptr;
}

Status StreamOrder::before(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t capture = 0;
  PK_TRY(check(driver_->cuStreamGetCaptureInfo(stream, &status, &capture, nullptr, nullptr, nullptr),
               "cuStreamGetCaptureInfo"));
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) capture = 0;
  Place& last = capture == 0 ? direct_ : captured_;
  const Place now{stream, capture, true};
  const Place was = std::exchange(last, now);
  if (!was.used || was.stream == stream || was.capture != capture) return {};
  Status joined = join(was.stream, stream);
  if (joined.ok() || capture != 0) return joined;
  // The stream is gone, its work perhaps not.
  return check(driver_->cuCtxSynchronize(), "cuCtxSynchronize");
}

Status StreamOrder::join(CUstream from, CUstream to) {
  PK_TRY(check(driver_->cuEventRecord(event_, from), "cuEventRecord"));
  return check(driver_->cuStreamWaitEvent(to, event_, CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent");
}

Status StreamOrder::drain() {
  if (!direct_.used) return {};
  if (driver_->cuEventRecord(event_, direct_.stream) != CUDA_SUCCESS) {
    return check(driver_->cuCtxSynchronize(), "cuCtxSynchronize");
  }
  return check(driver_->cuEventSynchronize(event_), "cuEventSynchronize");
}

}  // namespace pkcomm::cuda
