// The seam between the library and what it runs on: devices, shareable memory, and streams that take work in order. One
// platform is chosen for the process (PKCOMM_PLATFORM). How an operation is launched is the backend's matter
// (collectives/backend.hpp), since each platform has its own schedules' instances.
//
// No call changes the caller's current device, and each may be made while some stream is being captured. From any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/platform_kind.hpp"
#include "base/status.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm {

/// What is to be known of a device before anything runs on it. The host platform's devices have no facts.
struct DeviceFacts {
  std::array<std::byte, 16> uuid{};  ///< all zero on the host platform
  std::string name;                  ///< "NVIDIA H200"
  std::string arch;                  ///< "sm_90"
  std::string pci_bus_id;
  int sms = 0;
  bool multicast_capable = false;  ///< as its driver says
  int driver_version = 0;          ///< 13000: CUDA 13.0
};

class Platform {
 public:
  /// The platform of this process. Errors: pkcommUnsupported, with the reason, where the one asked for is not here.
  static Result<Platform*> get();

  virtual ~Platform() = default;
  virtual PlatformKind kind() const = 0;

  /// The calling thread's device; -1 where the platform has none.
  virtual Result<int> current_device() = 0;
  /// Makes ready what every use of the device needs. Errors: pkcommInvalidArgument for a device that is not there.
  virtual Result<DeviceFacts> open_device(int device) = 0;
  /// Whether `device` can map the memory of the other one. Success where only mapping will tell.
  virtual Status check_peer(int device, const DeviceFacts& peer) = 0;

  /// Memory of the device that others can map. The descriptor is the caller's and keeps the memory.
  virtual Result<int> create_memory(int device, std::size_t bytes) = 0;
  /// Reserves addresses without memory; a multiple of `granularity()`.
  virtual Result<std::byte*> reserve(std::size_t bytes) = 0;
  /// Ends a reservation in which nothing is mapped any more.
  virtual void release(std::byte* base, std::size_t bytes) = 0;
  /// Maps shareable memory at an address within a reservation, for use by `devices` of this process.
  virtual Status map(int descriptor, std::size_t bytes, std::byte* at, std::span<const int> devices) = 0;
  virtual void unmap(std::byte* at, std::size_t bytes) = 0;
  virtual std::size_t granularity() const = 0;

  // Of mapped memory, by the processor; complete on return, behind no stream's work.
  virtual Status clear(int device, std::byte* at, std::size_t bytes) = 0;
  virtual Status read(int device, void* to, const std::byte* from, std::size_t bytes) = 0;
  virtual Status write(int device, std::byte* to, const void* from, std::size_t bytes) = 0;

  // Streams. On the host platform they are the library's own; elsewhere these are the vendor's, on the current device.
  virtual Result<pkcommStream_t> create_stream() = 0;
  virtual Status destroy_stream(pkcommStream_t stream) = 0;
  virtual Status synchronize_stream(pkcommStream_t stream) = 0;
  virtual Status query_stream(pkcommStream_t stream) = 0;
  virtual Status enqueue_function(pkcommStream_t stream, void (*function)(void*), void* argument) = 0;
};

}  // namespace pkcomm
