// The host as a platform: memory is memfd mappings, streams are host streams.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "platform/host/stream.hpp"
#include "platform/platform.hpp"

namespace pkcomm::host {

class HostPlatform final : public Platform {
 public:
  static HostPlatform& instance();

  PlatformKind kind() const override { return PlatformKind::kHost; }
  Result<int> current_device() override { return -1; }
  Result<DeviceFacts> open_device(int) override { return DeviceFacts{}; }
  Status check_peer(int, const DeviceFacts&) override { return {}; }
  Result<int> create_memory(int device, std::size_t bytes) override;
  Result<std::byte*> reserve(std::size_t bytes) override;
  void release(std::byte* base, std::size_t bytes) override;
  Status map(int descriptor, std::size_t bytes, std::byte* at, std::span<const int> devices) override;
  void unmap(std::byte* at, std::size_t bytes) override;
  std::size_t granularity() const override;
  Status clear(int device, std::byte* at, std::size_t bytes) override;
  Status read(int device, void* to, const std::byte* from, std::size_t bytes) override;
  Status write(int device, std::byte* to, const void* from, std::size_t bytes) override;

  Result<pkcommStream_t> create_stream() override;
  Status destroy_stream(pkcommStream_t stream) override;
  Status synchronize_stream(pkcommStream_t stream) override;
  Status query_stream(pkcommStream_t stream) override;
  Status enqueue_function(pkcommStream_t stream, void (*function)(void*), void* argument) override;

  /// The stream behind a handle; null: the default stream of `device`, made when first asked for. The values of
  /// cudaStreamLegacy and cudaStreamPerThread name it too.
  Result<std::shared_ptr<Stream>> stream_of(pkcommStream_t handle, int device);

 private:
  Result<std::vector<std::shared_ptr<Stream>>> streams_of(pkcommStream_t handle);

  std::mutex mutex_;
  std::unordered_map<pkcommStream_t, std::shared_ptr<Stream>> streams_;
  std::map<int, std::shared_ptr<Stream>> default_streams_;
};

}  // namespace pkcomm::host
