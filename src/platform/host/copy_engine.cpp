// One thread per process: what a DMA engine is to a device. After fork a child begins with a worker of its own.
#include "platform/host/copy_engine.hpp"

#include <cstring>

#include "base/log.hpp"
#include "base/process.hpp"

namespace pkcomm::host {
namespace {

PerProcess<CopyWorker> worker;

}  // namespace

CopyWorker& CopyWorker::instance() {
  return worker.get([](CopyWorker& self) { self.start(); });
}

void CopyWorker::start() {
  const Status started = start_background_thread("pkcomm-copy", [this] { run(); });
  if (started.ok()) return;
  log_if_failed(started);
  const std::lock_guard lock(mutex_);
  threadless_ = true;
  done_.notify_all();
}

void CopyWorker::copy(std::byte* to, const std::byte* from, std::uint64_t bytes, std::uint64_t* pending) {
  {
    const std::lock_guard lock(mutex_);
    ++*pending;
    copies_.push_back({to, from, bytes, pending});
  }
  wanted_.notify_one();
}

void CopyWorker::drain(const std::uint64_t* pending) {
  std::unique_lock lock(mutex_);
  while (*pending > 0) {
    if (threadless_ && !copies_.empty()) {
      copy_first(lock);
    } else {
      done_.wait(lock);
    }
  }
}

void CopyWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [this] { return !copies_.empty(); });
    copy_first(lock);
  }
}

void CopyWorker::copy_first(std::unique_lock<std::mutex>& lock) {
  const Copy copy = copies_.front();
  copies_.pop_front();
  lock.unlock();
  std::memcpy(copy.to, copy.from, copy.bytes);
  lock.lock();
  if (--*copy.pending == 0) done_.notify_all();
}

}  // namespace pkcomm::host
