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

  const char* name() const override { return "host"; }
  Result<int> create_memory(std::size_t bytes) override;
  Result<std::byte*> reserve(std::size_t bytes) override;
  void release(std::byte* base, std::size_t bytes) override;
  Status map(int descriptor, std::uint64_t offset, std::size_t bytes, std::byte* at) override;
  std::size_t granularity() const override;

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
