// Recent plans of one dispatcher. Programs repeat a few calls for ever, and pricing takes several times as long as looking
// here. A plan depends on its request alone, so an entry never becomes wrong; it is only replaced.
//
// Any number of threads may look and keep at once. An entry is guarded by a version, odd while it is being written: who
// sees it odd or changed takes it for a miss, who cannot become its writer does not keep. The words are acquired and
// released one by one, not by fences, so that ThreadSanitizer follows: [entry] release: keep(); acquire: find().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dispatch/plan.hpp"

namespace pkcomm::dispatch {

class PlanCache {
 public:
  std::optional<Plan> find(const Request& request) const noexcept {
    const std::uint64_t key = pack(request);
    const Entry& entry = entries_[slot(key, request.bytes)];
    const std::uint32_t version = entry.version.load(std::memory_order_acquire);
    const auto get = [](const Word& word) { return word.load(std::memory_order_acquire); };
    if (get(entry.key) != key || get(entry.bytes) != request.bytes) return std::nullopt;
    Plan plan = unpack(get(entry.shape));
    plan.chunk_bytes = get(entry.chunk_bytes);
    plan.predicted_ns = get(entry.predicted_ns);
    // Relaxed: the acquiring loads above cannot move below it.
    const bool whole = version % 2 == 0 && entry.version.load(std::memory_order_relaxed) == version;
    return whole ? std::optional<Plan>(plan) : std::nullopt;
  }

  void keep(const Request& request, const Plan& plan) noexcept {
    const std::uint64_t key = pack(request);
    Entry& entry = entries_[slot(key, request.bytes)];
    std::uint32_t version = entry.version.load(std::memory_order_relaxed);
    if (version % 2 != 0) return;
    if (!entry.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) return;
    const auto set = [](Word& word, std::uint64_t value) { word.store(value, std::memory_order_release); };
    set(entry.key, key);
    set(entry.bytes, request.bytes);
    set(entry.shape, pack(plan));
    set(entry.chunk_bytes, plan.chunk_bytes);
    set(entry.predicted_ns, plan.predicted_ns);
    entry.version.store(version + 2, std::memory_order_release);
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  struct alignas(64) Entry {
    std::atomic<std::uint32_t> version{0};
    Word key{0};  // no request packs to 0
    Word bytes{0};
    Word shape{0};
    Word chunk_bytes{0};
    Word predicted_ns{0};
  };
  static constexpr std::size_t kEntries = 32;

  // All of a request but its bytes. Numbers beyond a field's width would collide: 16 bits hold any rank count and 8 any
  // CTA count that a configuration may have.
  static std::uint64_t pack(const Request& request) noexcept {
    std::uint64_t key = 1;
    const auto append = [&key](auto value, int bits) {
      key = key << bits | (static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << bits) - 1));
    };
    append(index(request.collective), 4);
    append(request.dtype, 4);
    append(request.kind, 3);
    append(request.nranks, 16);
    append(request.min_ctas, 8);
    append(request.max_ctas, 8);
    append(request.send_window, 1);
    append(request.recv_window, 1);
    append(request.deterministic, 1);
    return key;
  }
  static std::uint64_t pack(const Plan& plan) noexcept {
    return static_cast<std::uint64_t>(index(plan.algorithm)) |
           static_cast<std::uint64_t>(index(plan.mechanism)) << 8 | std::uint64_t{plan.zero_copy} << 16 |
           static_cast<std::uint64_t>(plan.ctas) << 24 | static_cast<std::uint64_t>(plan.threads) << 40;
  }
  static Plan unpack(std::uint64_t shape) noexcept {
    Plan plan;
    plan.algorithm = static_cast<Algorithm>(shape & 0xff);
    plan.mechanism = static_cast<Mechanism>(shape >> 8 & 0xff);
    plan.zero_copy = (shape >> 16 & 1) != 0;
    plan.ctas = static_cast<int>(shape >> 24 & 0xffff);
    plan.threads = static_cast<int>(shape >> 40 & 0xffff);
    return plan;
  }
  static std::size_t slot(std::uint64_t key, std::uint64_t bytes) noexcept {
    return static_cast<std::size_t>((key ^ bytes * 0x9e3779b97f4a7c15U) * 0x9e3779b97f4a7c15U >> 59);
  }
  static_assert(kEntries == 32, "slot() gives 5 bits");

  std::array<Entry, kEntries> entries_;
};

}  // namespace pkcomm::dispatch
