// One rank of the host platform whose peers are the test: it writes the words that they would, in the order it wants to
// see. So what is a race between ranks is a certainty here.
#pragma once

#include <memory>
#include <new>

#include "collectives/describe.hpp"
#include "collectives/host/executor.hpp"

namespace pkcomm::host {

class LoneRank {
 public:
  LoneRank(int rank, int nranks, std::int64_t timeout_ms = 5000) {
    view_.rank = rank;
    view_.nranks = nranks;
    view_.layout = Layout::make(nranks, std::uint64_t{4} << 20);
    view_.stride = view_.layout.bytes + kHeapBytes;
    memory_.reset(static_cast<std::byte*>(
        ::operator new[](view_.stride* static_cast<std::uint64_t>(nranks), std::align_val_t{4096})));
    std::fill_n(memory_.get(), view_.stride * static_cast<std::uint64_t>(nranks), std::byte{0});
    view_.base = memory_.get();
    executor = std::make_unique<Executor>(
        view_,
        WaiterOptions{timeout_ms, 1000, std::vector<std::int64_t>(static_cast<std::size_t>(nranks), 1),
                      &describe_call},
        std::nullopt);
  }

  static constexpr std::uint64_t kHeapBytes = 1 << 20;

  const View& view() const { return view_; }
  /// The start of a rank's heap.
  std::byte* heap(int rank) const { return view_.at(rank, view_.layout.bytes); }

  /// `peer` has made this call as operation m, the first ones of its kind being `word`.
  void calls(int peer, std::uint64_t word, const Operation& op) {
    *view_.call(peer, operation_of(word)) = {word,
                                             op.count,
                                             static_cast<std::int32_t>(op.collective),
                                             op.dtype,
                                             static_cast<std::int32_t>(op.kind),
                                             op.root,
                                             op.fingerprint};
    *view_.progress(view_.rank, peer) = word;
  }

  std::unique_ptr<Executor> executor;

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{4096}); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  View view_;
};

}  // namespace pkcomm::host
