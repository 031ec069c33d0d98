// One thread per process: what a DMA engine is to a device. After fork a child begins with a worker of its own.
#include "platform/host/copy_engine.hpp"

#include <cstring>
#include <thread>

#include "platform/host/process_wide.hpp"

namespace pkcomm::host {

CopyWorker& CopyWorker::instance() {
  return process_wide<CopyWorker>(
      [](CopyWorker& worker) { start_library_thread([&worker] { worker.run(); }); });
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
  done_.wait(lock, [pending] { return *pending == 0; });
}

void CopyWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [this] { return !copies_.empty(); });
    const Copy copy = copies_.front();
    copies_.pop_front();
    lock.unlock();
    std::memcpy(copy.to, copy.from, copy.bytes);
    lock.lock();
    if (--*copy.pending == 0) done_.notify_all();
  }
}

}  // namespace pkcomm::host
