// One-sided work: bytes into a peer's part, a signal to a peer, a wait for one. It has no number among the operations.
//
//   [signal]  release: raise_signal, after the puts before it on this rank's stream;  acquire: await_signal
#pragma once

#include "collectives/one_way.hpp"

namespace pkcomm {

struct PutWork {
  std::uint64_t offset;  // in the peer's part
  const std::byte* from;
  std::uint64_t bytes;
  int peer;
};
struct SignalWork {
  int peer, index;
};
struct WaitSignalWork {
  int peer, index;
  std::uint64_t arrivals;
};

// Each asks for the epoch first, since a GPU waits there for the kernels before this one.

PK_HD_POLICY
template <class X>
PK_HD bool put_bytes(X& x, const PutWork& work) {
  x.epoch();
  if (x.failed()) return false;
  const Part column = column_of(work.bytes, x.cta(), x.ctas());
  x.copy(x.view().at(work.peer, work.offset) + column.begin, work.from + column.begin, column.bytes);
  return true;
}

PK_HD_POLICY
template <class X>
PK_HD bool raise_signal(X& x, const SignalWork& work) {
  x.epoch();
  std::uint64_t* const word = x.view().signal(work.peer, work.index, x.view().rank);
  x.publish(word, x.load(word) + 1, work.peer);  // this rank is its only writer
  return !x.failed();
}

PK_HD_POLICY
template <class X>
PK_HD bool await_signal(X& x, const WaitSignalWork& work) {
  x.epoch();
  const View& view = x.view();
  std::uint64_t* const waited = view.waited(view.rank, work.index, work.peer);
  const std::uint64_t wanted = x.load(waited) + work.arrivals;
  if (!x.await(view.signal(view.rank, work.index, work.peer), wanted, work.peer, "signal")) return false;
  x.store(waited, wanted);
  return true;
}

}  // namespace pkcomm
