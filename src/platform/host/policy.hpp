// The execution policy of the host: a CTA is one loop body on one thread, its packet is 8 bytes of payload and then the
// tag released, its publish is a release store. With a seed (PKCOMM_HOST_SEED), copies and packets happen as late as a
// GPU's may: at the next publish, in a shuffled order, so that a missing wait or drain shows. Bulk copies always do. See
// collectives/one_way.hpp for what each function means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "platform/host/bell.hpp"
#include "platform/host/copy_engine.hpp"
#include "platform/host/waiter.hpp"

namespace pkcomm::host {

/// Copies and packets that have been issued but have not happened.
class LateStores {
 public:
  explicit LateStores(std::uint64_t seed) : random_(seed) {}
  void copy(std::byte* to, const std::byte* from, std::uint64_t bytes);
  void put(Packet* to, std::uint64_t data, std::uint64_t tag);
  void happen();

 private:
  struct Store {
    std::byte* to;
    const std::byte* from;  // null: a packet
    std::uint64_t bytes;
    std::uint64_t data, tag;
  };
  std::vector<Store> stores_;
  std::mt19937_64 random_;
};

class Policy {
 public:
  /// `late` holds the bulk copies; `all_late`: the ordinary ones as well.
  Policy(Waiter& waiter, LateStores& late, bool all_late, CopyEngine* engine, int ctas)
      : waiter_(waiter),
        view_(waiter.view()),
        late_(late),
        all_late_(all_late),
        engine_(engine),
        ctas_(ctas) {}

  const View& view() const { return view_; }
  int cta() const { return cta_; }
  int ctas() const { return ctas_; }
  void set_cta(int cta) { cta_ = cta; }

  static constexpr int kChunksTogether = 1;  // the peer copies one while this rank copies the next

  template <class F>
  void each(std::uint64_t n, F f) {
    for (std::uint64_t i = 0; i < n; ++i) f(i);
  }
  void barrier() {}
  std::uint64_t epoch() const { return own()->epoch; }
  std::uint64_t heard() const { return own()->heard; }
  void enters(std::uint64_t) {}  // the waiter knows it since Waiter::begin()
  bool failed() const { return waiter_.failed(); }

  template <bool ordered>
  void announce(std::uint64_t* word, std::uint64_t value, int peer) {
    publish(word, value, peer);
  }
  void publish(std::uint64_t* word, std::uint64_t value, int peer) {
    if (all_late_) late_.happen();
    if (failed()) return;
    store_release(word, value);
    wake_sleepers(view_.control(peer));
  }
  bool await(const std::uint64_t* word, std::uint64_t wanted, int peer, const char* phase) {
    return waiter_.wait([=] { return load_acquire(word) >= wanted; }, {&peer, 1}, phase);
  }
  bool demand(const std::uint64_t* word, std::uint64_t wanted, int peer) {
    return waiter_.demand(load_acquire(word), wanted, peer);
  }
  bool agrees(const std::uint64_t* word, std::uint64_t wanted, int peer) {
    const std::uint64_t seen = load_acquire(word);
    return operation_of(seen) > operation_of(wanted) || waiter_.demand(seen, wanted, peer);
  }
  void disagree(int peer, std::uint64_t theirs, std::uint64_t ours) {
    waiter_.fail(pkcommMismatch, "rank " + std::to_string(peer) + " sends " + std::to_string(theirs) +
                                     " bytes, this rank (" + std::to_string(view_.rank) + ") receives " +
                                     std::to_string(ours));
  }
  std::uint64_t load(const std::uint64_t* word) const { return load_acquire(word); }
  void store(std::uint64_t* word, std::uint64_t value) { store_relaxed(word, value); }

  void put(Packet* packet, std::uint64_t data, std::uint64_t tag) {
    if (all_late_) {
      late_.put(packet, data, tag);
    } else {
      packet->data = data;
      store_release(&packet->tag, tag);  // release half of [packet]; acquired by poll()
    }
  }
  void nudge(int peer) {
    if (all_late_) late_.happen();
    wake_sleepers(view_.control(peer));
  }
  std::uint64_t poll(const Packet* packet, std::uint64_t tag, int peer) {
    if (load_acquire(&packet->tag) != tag) {
      const bool come =
          waiter_.wait([=] { return operation_of(load_acquire(&packet->tag)) == operation_of(tag); },
                       {&peer, 1}, "packet");
      if (!come || !demand(&packet->tag, tag, peer)) return 0;
    }
    return packet->data;
  }

  void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    if (all_late_) {
      late_.copy(to, from, bytes);
    } else if (bytes > 0) {
      std::memcpy(to, from, bytes);
    }
  }
  void bulk(std::byte* to, const std::byte* from, std::uint64_t bytes) { late_.copy(to, from, bytes); }
  void drain_bulk() { late_.happen(); }
  void engine(std::byte* to, const std::byte* from, std::uint64_t bytes) { engine_->copy(to, from, bytes); }
  void drain_engine() { engine_->drain(); }

  /// What was copied so far is read next by this block itself.
  void settle() {
    if (all_late_) late_.happen();
  }

  bool leave(std::uint64_t word, bool heard) {
    settle();
    if (cta_ + 1 < ctas_) return !failed();
    if (!waiter_.end()) return false;
    if (heard) own()->heard = operation_of(word);
    own()->epoch = word;
    return true;
  }

 private:
  ControlBlock* own() const { return view_.control(view_.rank); }

  Waiter& waiter_;
  const View& view_;
  LateStores& late_;
  const bool all_late_;
  CopyEngine* const engine_;
  const int ctas_;
  int cta_ = 0;
};

}  // namespace pkcomm::host
