// The event is recorded behind every piece of work, while its stream is known to be there: a stream that has been
// destroyed cannot be asked for anything, its handle may not even be looked at.
#include "collectives/cuda/stream_order.hpp"

#include "base/log.hpp"

namespace pkcomm::cuda {

Status StreamOrder::create(const Driver& driver) {
  driver_ = &driver;
  for (CUevent* const event : {&direct_.event, &captured_.event, &fork_}) {
    PK_TRY(check(driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
  }
  return {};
}

void StreamOrder::destroy() {
  for (const CUevent event : {direct_.event, captured_.event, fork_}) {
    if (event != nullptr) log_if_failed(check(driver_->cuEventDestroy(event), "cuEventDestroy"));
  }
}

Result<StreamOrder::Place> StreamOrder::place_of(CUstream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t capture = 0;
  PK_TRY(check(driver_->cuStreamGetCaptureInfo(stream, &status, &capture, nullptr, nullptr, nullptr),
               "cuStreamGetCaptureInfo"));
  // A stream that is being captured may not be asked for its id, but is there until the capture ends.
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) {
    return Place{stream, reinterpret_cast<std::uintptr_t>(stream), capture};
  }
  Place place{stream, 0, 0};
  PK_TRY(check(driver_->cuStreamGetId(stream, &place.id), "cuStreamGetId"));
  return place;
}

Result<StreamOrder::Place> StreamOrder::before(CUstream stream) {
  PK_ASSIGN(const Place place, place_of(stream));
  const Trail& trail = trail_of(place);
  if (trail.used && trail.stream != place.id && trail.capture == place.capture) {
    PK_TRY(
        check(driver_->cuStreamWaitEvent(stream, trail.event, CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent"));
  }
  return place;
}

Status StreamOrder::after(const Place& place) {
  Trail& trail = trail_of(place);
  PK_TRY(check(driver_->cuEventRecord(trail.event, place.stream), "cuEventRecord"));
  trail = {trail.event, place.id, place.capture, true};
  return {};
}

Status StreamOrder::join(CUstream from, CUstream to) {
  PK_TRY(check(driver_->cuEventRecord(fork_, from), "cuEventRecord"));
  return check(driver_->cuStreamWaitEvent(to, fork_, CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent");
}

Status StreamOrder::drain() {
  if (!direct_.used) return {};
  return check(driver_->cuEventSynchronize(direct_.event), "cuEventSynchronize");
}

}  // namespace pkcomm::cuda
