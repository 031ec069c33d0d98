// One device in use by this process: its primary context, the stream and the pinned memory by which the processor clears,
// reads and writes mapped memory, and the kernels loaded on it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "platform/cuda/modules.hpp"
#include "platform/cuda/scopes.hpp"

namespace pkcomm::cuda {

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const Driver& driver, CUdevice handle);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  CUcontext context() const noexcept { return context_; }

  /// The context is current and calls are allowed during captures, in this thread while the object lives.
  struct Scope {
    RelaxedCapture relaxed;
    CurrentContext current;
  };
  Result<Scope> enter() const { return enter_context(driver_, context_); }
  static Result<Scope> enter_context(const Driver& driver, CUcontext context);

  // Complete on return, behind no stream's work but their own. From any thread.
  Status clear(std::byte* at, std::size_t bytes);
  Status read(void* to, const std::byte* from, std::size_t bytes);
  Status write(std::byte* to, const void* from, std::size_t bytes);

  /// The kernels of `images`, loaded at the first call with these images, shared by all later ones and kept as long as
  /// the device: unloading waits for the device, and graphs that were captured with the kernels may outlive whoever had
  /// them loaded.
  Result<const Modules*> modules(std::span<const KernelImage> images, std::span<const KernelName> kernels);

 private:
  Device(const Driver& driver, CUdevice handle) noexcept : driver_(driver), handle_(handle) {}
  Status make_resources();
  template <class Copy>
  Status copy_in_pieces(std::size_t bytes, const Copy& copy);
  Status finish(const char* call, const void* at, std::size_t bytes);

  const Driver& driver_;
  const CUdevice handle_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  void* staging_ = nullptr;
  std::mutex staging_mutex_;

  struct Loaded {
    const KernelImage* images;
    std::unique_ptr<Modules> modules;
  };
  std::mutex modules_mutex_;
  std::vector<Loaded> loaded_;
};

}  // namespace pkcomm::cuda
