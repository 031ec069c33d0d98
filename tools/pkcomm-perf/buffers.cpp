// Poison is written and looked for by way of the device, which alone knows how to reach its memory.
#include "buffers.hpp"

#include <algorithm>
#include <utility>

namespace pkcomm::perf {

Result<Buffer> Buffer::make(Backend& backend, Memory memory, std::size_t bytes) {
  const std::size_t whole = footprint(bytes);
  Result<void*> base = backend.allocate(memory, whole);
  PERF_TRY(base);
  return Buffer(backend, memory, static_cast<std::byte*>(base.value()), whole);
}

Buffer::Buffer(Buffer&& other) noexcept
    : backend_(other.backend_),
      memory_(other.memory_),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_) {}

Buffer::~Buffer() {
  if (base_ != nullptr) backend_.release(memory_, base_, bytes_);
}

Outcome poison(Device& device, std::byte* data, std::size_t bytes) {
  return device.fill(data - kGuardBytes, kPoisonByte, bytes + 2 * kGuardBytes);
}

Result<std::size_t> damage(Device& device, const std::byte* data, std::size_t bytes) {
  std::size_t damaged = 0;
  PERF_TRY(device.read(data, bytes, [&](const std::byte* part, std::size_t, std::size_t length) {
    damaged += length - static_cast<std::size_t>(std::count(part, part + length, std::byte{kPoisonByte}));
  }));
  return damaged;
}

Result<std::size_t> guard_damage(Device& device, const std::byte* data, std::size_t bytes) {
  const Result<std::size_t> before = damage(device, data - kGuardBytes, kGuardBytes);
  PERF_TRY(before);
  const Result<std::size_t> behind = damage(device, data + bytes, kGuardBytes);
  PERF_TRY(behind);
  return before.value() + behind.value();
}

}  // namespace pkcomm::perf
