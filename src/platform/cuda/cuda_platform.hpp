// CUDA as a platform: memory is VMM allocations that are passed on as POSIX descriptors, streams are CUDA's own.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "platform/cuda/device.hpp"
#include "platform/cuda/driver.hpp"
#include "platform/platform.hpp"

namespace pkcomm::cuda {

class CudaPlatform final : public Platform {
 public:
  /// The process's platform. It is never destroyed: at exit CUDA may be gone before we are.
  static Result<CudaPlatform*> instance();

  /// Looks at the devices, but opens none.
  static Result<std::unique_ptr<CudaPlatform>> create(const Driver& driver);
  CudaPlatform(const CudaPlatform&) = delete;
  CudaPlatform& operator=(const CudaPlatform&) = delete;
  ~CudaPlatform() override = default;

  PlatformKind kind() const override { return PlatformKind::kCuda; }
  Result<int> current_device() override;
  Result<DeviceFacts> open_device(int device) override;
  Status check_peer(int device, const DeviceFacts& peer) override;

  Result<int> create_memory(int device, std::size_t bytes) override;
  Result<std::byte*> reserve(std::size_t bytes) override;
  void release(std::byte* base, std::size_t bytes) override;
  Status map(int descriptor, std::size_t bytes, std::byte* at, std::span<const int> devices) override;
  void unmap(std::byte* at, std::size_t bytes) override;
  std::size_t granularity() const override { return granularity_; }

  Status clear(int device, std::byte* at, std::size_t bytes) override;
  Status read(int device, void* to, const std::byte* from, std::size_t bytes) override;
  Status write(int device, std::byte* to, const void* from, std::size_t bytes) override;

  Result<pkcommStream_t> create_stream() override;
  Status destroy_stream(pkcommStream_t stream) override;
  Status synchronize_stream(pkcommStream_t stream) override;
  Status query_stream(pkcommStream_t stream) override;
  Status enqueue_function(pkcommStream_t stream, void (*function)(void*), void* argument) override;

  const Driver& driver() const noexcept { return driver_; }
  /// A device that open_device() has opened. It lives as long as the platform.
  Result<Device*> opened(int device);

 private:
  struct Slot {
    CUdevice handle = 0;
    std::array<std::byte, 16> uuid{};
    bool fabric_handles = false;
    std::mutex mutex;  // of `device`, while it is opened
    std::unique_ptr<Device> device;
  };

  explicit CudaPlatform(const Driver& driver) noexcept : driver_(driver) {}
  Status look_at_devices();
  Result<Slot*> slot(int device);
  Result<CurrentContext> any_context();
  Result<std::size_t> granularity_of(const Slot& slot) const;
  Status check_size(const char* what, std::size_t bytes) const;
  Result<CUmemGenericAllocationHandle> allocate(const Slot& slot, std::size_t bytes) const;

  const Driver& driver_;
  std::size_t granularity_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;  // by ordinal
};

}  // namespace pkcomm::cuda
