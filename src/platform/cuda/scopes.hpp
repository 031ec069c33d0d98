// What a call of ours changes of the calling thread's CUDA state and puts back: its current context, and how its stream
// captures restrict it. After every call of the library both are what the caller had.
#pragma once

#include <utility>

#include "base/log.hpp"
#include "platform/cuda/driver.hpp"

namespace pkcomm::cuda {

/// A context is current in this thread while this object lives. Move-only; ends in the thread that began it, and scopes
/// end in the reverse order, both as local variables do.
class CurrentContext {
 public:
  static Result<CurrentContext> enter(const Driver& driver, CUcontext context) {
    PK_TRY(check(driver.cuCtxPushCurrent(context), "cuCtxPushCurrent"));
    return CurrentContext(driver);
  }
  CurrentContext(CurrentContext&& other) noexcept : driver_(std::exchange(other.driver_, nullptr)) {}
  ~CurrentContext() {
    CUcontext popped = nullptr;
    if (driver_ != nullptr) log_if_failed(check(driver_->cuCtxPopCurrent(&popped), "cuCtxPopCurrent"));
  }

 private:
  explicit CurrentContext(const Driver& driver) noexcept : driver_(&driver) {}
  const Driver* driver_;
};

/// Calls that are unsafe while some stream is captured (those that allocate, load or wait) are allowed in this thread
/// while this object lives: ours touch no captured stream. Else they would fail and spoil the capture.
class RelaxedCapture {
 public:
  static Result<RelaxedCapture> enter(const Driver& driver) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    PK_TRY(check(driver.cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode"));
    return RelaxedCapture(driver, mode);
  }
  RelaxedCapture(RelaxedCapture&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)), before_(other.before_) {}
  ~RelaxedCapture() {
    if (driver_ == nullptr) return;
    log_if_failed(
        check(driver_->cuThreadExchangeStreamCaptureMode(&before_), "cuThreadExchangeStreamCaptureMode"));
  }

 private:
  RelaxedCapture(const Driver& driver, CUstreamCaptureMode before) noexcept
      : driver_(&driver), before_(before) {}
  const Driver* driver_;
  CUstreamCaptureMode before_;
};

}  // namespace pkcomm::cuda
