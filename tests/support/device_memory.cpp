// Pieces are cut into blocks of whole granules; a freed block is given to the next request that fills half of it.
#include "support/device_memory.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>

#include "support/cuda.hpp"
#include "support/platform.hpp"

namespace pkcomm::test {

namespace {

constexpr std::size_t kGranule = 256;
// Pinning takes a second a GiB, device memory no time.
constexpr std::size_t kVisiblePiece = std::size_t{256} << 20, kDevicePiece = std::size_t{1} << 30;

class Pieces {
 public:
  Pieces(void* (*make)(std::size_t), std::size_t least) : make_(make), least_(least) {}

  /// Has `bytes` in one place.
  void prepare(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (left_ < bytes) cut_from(bytes);
  }
  void* take(std::size_t bytes) {
    const std::size_t whole = (std::max<std::size_t>(bytes, 1) + kGranule - 1) / kGranule * kGranule;
    const std::lock_guard lock(mutex_);
    const auto fitting = free_.lower_bound(whole);
    if (fitting != free_.end() && fitting->first <= 2 * whole) {
      void* const at = fitting->second;
      free_.erase(fitting);
      return at;
    }
    if (left_ < whole) cut_from(whole);
    std::byte* const at = next_;
    next_ += whole;
    left_ -= whole;
    bytes_[at] = whole;
    return at;
  }
  void give(void* at) {
    const std::lock_guard lock(mutex_);
    free_.emplace(bytes_.at(at), at);
  }

 private:
  void cut_from(std::size_t at_least) {
    left_ = std::max(at_least, least_);
    next_ = static_cast<std::byte*>(make_(left_));
  }

  void* (*const make_)(std::size_t);
  const std::size_t least_;  // bytes of a piece
  std::mutex mutex_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::unordered_map<void*, std::size_t> bytes_;  // of every block cut so far
  std::multimap<std::size_t, void*> free_;
};

Pieces& visible() {
  static Pieces& pieces =
      *new Pieces(&cuda_allocate_pinned, kVisiblePiece);  // outlives everything that exits late
  return pieces;
}
Pieces& of_device(int device) {
  static auto& pieces = *new std::map<int, Pieces>();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return pieces.try_emplace(device, &cuda_allocate_device, kDevicePiece).first->second;
}

thread_local int current_device = 0;

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;

  static void run(void* self) {
    const std::unique_ptr<Copy> copy(static_cast<Copy*>(self));
    std::memcpy(copy->to, copy->from, copy->bytes);
  }
};

}  // namespace

void prepare_memory(int device) {
  current_device = device;
  visible().prepare(1);
  of_device(device).prepare(1);
}

void reserve_visible(std::size_t bytes) {
  if (!on_cuda()) return;
  use_device(0);
  visible().prepare(bytes);
}

void* allocate_visible(std::size_t bytes) {
  return on_cuda() ? visible().take(bytes) : ::operator new(bytes);
}

void free_visible(void* at) { on_cuda() ? visible().give(at) : ::operator delete(at); }

DeviceBlock::DeviceBlock(std::size_t bytes) {
  if (!on_cuda()) {
    block_.reset(static_cast<std::byte*>(::operator new(bytes)),
                 [](std::byte* at) { ::operator delete(at); });
    return;
  }
  Pieces& pieces = of_device(current_device);
  block_.reset(static_cast<std::byte*>(pieces.take(bytes)), [&pieces](std::byte* at) { pieces.give(at); });
}

void copy_on(pkcommStream_t stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (on_cuda()) return cuda_copy(stream, to, from, bytes);
  auto* const copy = new Copy{to, from, bytes};
  if (pkcommStreamEnqueue(stream, &Copy::run, copy) != pkcommSuccess) give_up(pkcommGetLastError(nullptr));
}

}  // namespace pkcomm::test
