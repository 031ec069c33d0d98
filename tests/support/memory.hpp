// A buffer of one rank between guard bytes, wherever it lies, and the test's view of it.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/device_memory.hpp"
#include "support/world.hpp"

namespace pkcomm::test {

enum class Place {
  kVisible,   ///< memory that the test's thread sees
  kDevice,    ///< memory of the rank's device, private
  kSymmetric  ///< the symmetric heap
};

/// The places that differ: on the host platform private memory is private memory.
inline std::vector<Place> places() {
  if (on_cuda()) return {Place::kVisible, Place::kDevice, Place::kSymmetric};
  return {Place::kVisible, Place::kSymmetric};
}

/// Calls are given at(); the test reads and writes host(), which is the same memory or a copy of it. The copies go by the
/// rank's stream: upload() before a call that reads, download() behind one that wrote, and then the stream is
/// synchronised. Everything is poisoned at first. Aligned to `element` bytes and no more.
class Memory {
 public:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kPoison{0xA5};
  /// Bytes of heap that a buffer takes with its guards.
  static constexpr std::size_t with_guards(std::size_t bytes) { return bytes + 2 * kAligned; }

  /// Symmetric memory is freed with the communicator, so a rank that makes one makes as many as the others, in their
  /// order.
  Memory(Rank& self, Place place, std::size_t bytes, std::size_t element)
      : stream_(self.stream), bytes_(bytes), before_(kGuard + element), host_(bytes + 2 * before_, kPoison) {
    if (place == Place::kSymmetric) {
      void* at = nullptr;
      if (self.ok(pkcommHeapAlloc(self.comm, host_.size(), &at), "heap"))
        begin_ = static_cast<std::byte*>(at);
    } else if (place == Place::kDevice) {
      block_ = DeviceBlock(host_.size());
      begin_ = block_.data();
    }
    if (begin_ == nullptr) begin_ = host_.data();
    upload_now();
  }
  /// In with_guards(bytes) bytes of the heap that the test has, aligned as they are.
  Memory(Rank& self, std::byte* heap, std::size_t bytes)
      : stream_(self.stream),
        bytes_(bytes),
        before_(kAligned),
        host_(with_guards(bytes), kPoison),
        begin_(heap) {
    upload_now();
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    // A copy may be under way where a test has given up.
    if (begin_ != host_.data()) (void)pkcommStreamSynchronize(stream_);
  }

  void* at(std::size_t byte = 0) { return begin_ + before_ + byte; }
  std::byte* host() { return host_.data() + before_; }
  const std::byte* host() const { return host_.data() + before_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(host());
  }
  std::size_t size() const { return bytes_; }

  void upload() {
    if (begin_ != host_.data()) copy_on(stream_, begin_, host_.data(), host_.size());
  }
  void download() {
    if (begin_ != host_.data()) copy_on(stream_, host_.data(), begin_, host_.size());
  }
  /// Sets every byte, here and there, while nothing is under way on the stream.
  void fill(std::byte value) {
    std::memset(host(), static_cast<int>(value), bytes_);
    upload_now();
  }
  /// After a download: the first `bytes` bytes may have any value, everything else is as it was made.
  bool guards_intact(std::size_t bytes) const {
    for (std::size_t i = 0; i < host_.size(); ++i) {
      if ((i < before_ || i >= before_ + bytes) && host_[i] != kPoison) return false;
    }
    return true;
  }
  bool guards_intact() const { return guards_intact(bytes_); }

 private:
  static constexpr std::size_t kAligned = 256;

  /// The test may write to host() again when this returns.
  void upload_now() {
    if (begin_ == host_.data()) return;
    upload();
    (void)pkcommStreamSynchronize(stream_);
  }

  const pkcommStream_t stream_;
  const std::size_t bytes_, before_;
  Visible<std::byte> host_;
  DeviceBlock block_;
  std::byte* begin_ = nullptr;
};

/// Where the two buffers of a call lie. The heap's two blocks are allocated once and serve call after call.
class BufferPair {
 public:
  /// One for each place, for buffers of at most `most` bytes. Collective.
  static std::vector<BufferPair> all(Rank& self, std::size_t most) {
    std::vector<BufferPair> pairs;
    for (const Place place : places()) {
      BufferPair pair(place);
      for (std::byte*& block : pair.heap_) {
        void* at = nullptr;
        if (place == Place::kSymmetric)
          self.ok(pkcommHeapAlloc(self.comm, Memory::with_guards(most), &at), "heap");
        block = static_cast<std::byte*>(at);
      }
      pairs.push_back(pair);
    }
    return pairs;
  }

  Memory first(Rank& self, std::size_t bytes, std::size_t element) const {
    return make(self, 0, bytes, element);
  }
  Memory second(Rank& self, std::size_t bytes, std::size_t element) const {
    return make(self, 1, bytes, element);
  }
  bool symmetric() const { return place_ == Place::kSymmetric; }
  const char* name() const {
    return symmetric() ? " in the heap" : place_ == Place::kDevice ? " in device memory" : "";
  }

 private:
  explicit BufferPair(Place place) : place_(place) {}
  Memory make(Rank& self, std::size_t which, std::size_t bytes, std::size_t element) const {
    return heap_[which] != nullptr ? Memory(self, heap_[which], bytes) : Memory(self, place_, bytes, element);
  }

  Place place_;
  std::byte* heap_[2] = {};
};

/// Reads an element at an address of calls: a rank's own memory or a peer's.
template <class T>
T read_at(Rank& self, const void* from) {
  Visible<T> value(1);
  copy_on(self.stream, value.data(), from, sizeof(T));
  self.synchronize("read");
  return value[0];
}
/// Writes elements at such an address.
template <class T>
void write_at(Rank& self, void* to, const Visible<T>& values) {
  copy_on(self.stream, to, values.data(), values.size() * sizeof(T));
  self.synchronize("write");
}

}  // namespace pkcomm::test
