// Memory for the buffers of calls. Visible memory is read and written by the test's thread and by streams alike: pinned
// host memory on CUDA. Device memory, a rank's own or of the symmetric heap, is the streams' alone; what goes in or out
// is copied on a stream. On the host platform all of it is plain memory.
//
// CUDA's own allocation calls may wait for kernels that run, and so for peers that have not called yet; blocks therefore
// come from large pieces made beforehand, which are kept till the process ends.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "pkcomm/pkcomm.h"

namespace pkcomm::test {

/// Makes the first pieces for a device, which is current; use_device() does.
void prepare_memory(int device);
/// For cases with buffers of more than 100 MiB in all: makes a piece of this size, before any rank starts.
void reserve_visible(std::size_t bytes);

void* allocate_visible(std::size_t bytes);
void free_visible(void* at);

template <class T>
struct VisibleAllocator {
  using value_type = T;
  VisibleAllocator() = default;
  template <class U>
  VisibleAllocator(const VisibleAllocator<U>&) {
  }  // NOLINT(google-explicit-constructor): as allocators convert
  T* allocate(std::size_t count) { return static_cast<T*>(allocate_visible(count * sizeof(T))); }
  void deallocate(T* at, std::size_t) { free_visible(at); }
  friend bool operator==(const VisibleAllocator&, const VisibleAllocator&) { return true; }
};

/// A vector that calls may be given.
template <class T>
using Visible = std::vector<T, VisibleAllocator<T>>;

/// A block of the current device's memory.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  explicit DeviceBlock(std::size_t bytes);
  std::byte* data() const { return block_.get(); }

 private:
  std::shared_ptr<std::byte> block_;
};

/// Enqueues a copy between any of the memories above, of the heap too.
void copy_on(pkcommStream_t stream, void* to, const void* from, std::size_t bytes);

}  // namespace pkcomm::test
