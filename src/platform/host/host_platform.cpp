// Streams by handle.
#include "platform/host/host_platform.hpp"

#include <algorithm>

#include "base/process.hpp"

namespace pkcomm::host {
namespace {

// Devices on whose default streams this thread has put work: what NULL means to it when it waits. Others' default streams
// are not its business: their work may need what this thread does next.
thread_local std::vector<int> used_devices;

PerProcess<HostPlatform> platform;

bool names_default(pkcommStream_t handle) {
  // NULL, cudaStreamLegacy, cudaStreamPerThread.
  return reinterpret_cast<std::uintptr_t>(handle) <= 2;
}

Status not_a_stream(pkcommStream_t handle) {
  return Status(pkcommInvalidArgument, "stream " + std::to_string(reinterpret_cast<std::uintptr_t>(handle)) +
                                           " is not a live host stream; pkcommStreamCreate makes them");
}

}  // namespace

HostPlatform& HostPlatform::instance() { return platform.get(); }

Result<pkcommStream_t> HostPlatform::create_stream() {
  auto stream = std::make_shared<Stream>();
  const auto handle = reinterpret_cast<pkcommStream_t>(stream.get());
  const std::lock_guard lock(mutex_);
  streams_.emplace(handle, std::move(stream));
  return handle;
}

Status HostPlatform::destroy_stream(pkcommStream_t handle) {
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(handle);
    if (found == streams_.end()) return not_a_stream(handle);
    stream = std::move(found->second);
    streams_.erase(found);
  }
  stream->wait(stream->last_ticket());
  return {};
}

Result<std::shared_ptr<Stream>> HostPlatform::stream_of(pkcommStream_t handle, int device) {
  const std::lock_guard lock(mutex_);
  if (names_default(handle)) {
    std::shared_ptr<Stream>& stream = default_streams_[device];
    if (!stream) stream = std::make_shared<Stream>();
    if (std::find(used_devices.begin(), used_devices.end(), device) == used_devices.end()) {
      used_devices.push_back(device);
    }
    return stream;
  }
  const auto found = streams_.find(handle);
  if (found == streams_.end()) return not_a_stream(handle);
  return found->second;
}

Result<std::vector<std::shared_ptr<Stream>>> HostPlatform::streams_of(pkcommStream_t handle) {
  std::vector<std::shared_ptr<Stream>> streams;
  if (names_default(handle)) {
    const std::lock_guard lock(mutex_);
    for (const int device : used_devices) {
      const auto found = default_streams_.find(device);
      if (found != default_streams_.end()) streams.push_back(found->second);
    }
  } else {
    PK_ASSIGN(std::shared_ptr<Stream> stream, stream_of(handle, 0));
    streams.push_back(std::move(stream));
  }
  return streams;
}

Status HostPlatform::synchronize_stream(pkcommStream_t handle) {
  if (!names_default(handle)) {
    PK_ASSIGN(const std::shared_ptr<Stream> stream, stream_of(handle, 0));
    stream->wait(stream->last_ticket());
    return stream->take_failure();
  }
  PK_ASSIGN(const auto streams, streams_of(handle));
  std::vector<std::uint64_t> tickets;
  for (const auto& stream : streams) tickets.push_back(stream->last_ticket());
  // Several default streams may wait for each other (ranks of one thread): all of them get going.
  if (streams.size() > 1) {
    for (const auto& stream : streams) {
      if (!stream->idle() && !stream->driven()) stream->start_worker();
    }
  }
  Status first;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i]->wait(tickets[i]);
    if (Status failure = streams[i]->take_failure(); first.ok()) first = std::move(failure);
  }
  return first;
}

Status HostPlatform::query_stream(pkcommStream_t handle) {
  PK_ASSIGN(const auto streams, streams_of(handle));
  for (const auto& stream : streams) {
    if (!stream->idle()) return Status(pkcommInProgress, "the stream has work left");
  }
  return {};
}

Status HostPlatform::enqueue_function(pkcommStream_t handle, void (*function)(void*), void* argument) {
  PK_ASSIGN(const std::shared_ptr<Stream> stream, stream_of(handle, 0));
  stream->enqueue(Task([function, argument]() -> Status {
    function(argument);
    return {};
  }));
  return {};
}

}  // namespace pkcomm::host
