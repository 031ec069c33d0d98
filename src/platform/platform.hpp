// The seam between the library and what it runs on: shareable memory, and streams that take work in order. One platform
// is chosen for the process (PKCOMM_PLATFORM). How an operation is launched is the backend's matter
// (collectives/backend.hpp), since each platform has its own schedules' instances.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm {

class Platform {
 public:
  /// The platform of this process. Errors: pkcommUnsupported, with the reason, where the one asked for is not here.
  static Result<Platform*> get();

  virtual ~Platform() = default;
  virtual const char* name() const = 0;

  /// Memory that other processes can map. The descriptor is the caller's; its pages are zero.
  virtual Result<int> create_memory(std::size_t bytes) = 0;
  /// Reserves addresses without memory; a multiple of `granularity()`.
  virtual Result<std::byte*> reserve(std::size_t bytes) = 0;
  virtual void release(std::byte* base, std::size_t bytes) = 0;
  /// Maps a part of shareable memory at an address within a reservation.
  virtual Status map(int descriptor, std::uint64_t offset, std::size_t bytes, std::byte* at) = 0;
  virtual std::size_t granularity() const = 0;

  // Streams of the host platform; others answer pkcommUnsupported, their streams are the vendor's.
  virtual Result<pkcommStream_t> create_stream() = 0;
  virtual Status destroy_stream(pkcommStream_t stream) = 0;
  virtual Status synchronize_stream(pkcommStream_t stream) = 0;
  virtual Status query_stream(pkcommStream_t stream) = 0;
  virtual Status enqueue_function(pkcommStream_t stream, void (*function)(void*), void* argument) = 0;
};

}  // namespace pkcomm
