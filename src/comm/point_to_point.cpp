// Sends, receives, all_to_all_v, and the one-sided calls.
#include "base/checked.hpp"
#include "base/hash.hpp"
#include "comm/communicator.hpp"
#include "comm/group.hpp"
#include "numerics/dispatch_type.hpp"

namespace pkcomm {
namespace {

Result<std::uint64_t> bytes_of(const char* argument, std::size_t count, pkcommDataType_t dtype) {
  const std::size_t element = numerics::element_size(dtype);
  if (element == 0) {
    return Status(pkcommInvalidArgument,
                  "dtype is " + std::to_string(dtype) + "; allowed: the values of pkcommDataType_t");
  }
  const auto bytes = checked::multiply<std::uint64_t>(count, element);
  if (!bytes || *bytes > INT64_MAX) {
    return Status(pkcommInvalidArgument, std::string(argument) + " is " + std::to_string(count) + "; its " +
                                             std::to_string(element) + "-byte elements exceed 2^63 bytes");
  }
  return *bytes;
}

}  // namespace

Status Communicator::transfer(bool sends, void* buffer, std::size_t count, pkcommDataType_t dtype, int peer,
                              pkcommStream_t stream) {
  PK_TRY(ready());
  PK_TRY(require_rank("peer", peer));
  PK_ASSIGN(const std::uint64_t bytes, bytes_of("count", count, dtype));
  if (count == 0) return {};
  if (buffer == nullptr) {
    return Status(pkcommInvalidArgument,
                  std::string(sends ? "send" : "recv") + " is null with count " + std::to_string(count));
  }
  if (peer == rank_ && Group::open() == nullptr) {
    return Status(pkcommInvalidUsage, "peer is " + std::to_string(peer) +
                                          ", this rank itself: that needs a group with the matching call");
  }
  TransferWork work{{}, {}, false};
  work.transfers.push_back({static_cast<std::byte*>(buffer), bytes, peer, sends});
  return submit({backend_.get(), stream, std::move(work)});
}

Status Communicator::all_to_all_v(const Call& call, const PairCounts& counts) {
  PK_TRY(ready());
  TransferWork work{{}, {}, true};
  const std::size_t element = numerics::element_size(call.dtype);
  for (int step = 0; step < nranks_; ++step) {
    const int peer = (rank_ + step) % nranks_;
    const auto i = static_cast<std::size_t>(peer);
    PK_ASSIGN(const std::uint64_t out, bytes_of("send_counts entry", counts.send_counts[i], call.dtype));
    PK_ASSIGN(const std::uint64_t in, bytes_of("recv_counts entry", counts.recv_counts[i], call.dtype));
    if ((out > 0 && call.send == nullptr) || (in > 0 && call.recv == nullptr)) {
      return Status(pkcommInvalidArgument,
                    "send or recv is null with a count for rank " + std::to_string(peer));
    }
    if (peer == rank_ && out != in) {
      return Status(pkcommInvalidArgument, "this rank sends itself " + std::to_string(out) +
                                               " bytes and receives " + std::to_string(in));
    }
    auto* const send =
        static_cast<std::byte*>(const_cast<void*>(call.send)) + counts.send_displs[i] * element;
    auto* const recv = static_cast<std::byte*>(call.recv) + counts.recv_displs[i] * element;
    if (out > 0) work.transfers.push_back({send, out, peer, true});
    if (in > 0) work.transfers.push_back({recv, in, peer, false});
  }
  work.op.collective = Collective::kAllToAllV;
  work.op.dtype = call.dtype;
  // Counts differ between ranks by right: the pairs compare theirs.
  work.op.fingerprint =
      mix(static_cast<std::uint64_t>(call.collective), static_cast<std::uint64_t>(call.dtype)) >> 48;
  return submit({backend_.get(), call.stream, std::move(work)});
}

Status Communicator::put(const void* from, void* to, std::size_t bytes, int peer, pkcommStream_t stream) {
  PK_TRY(ready());
  PK_TRY(require_rank("peer", peer));
  if (bytes == 0) return {};
  if (from == nullptr)
    return Status(pkcommInvalidArgument, "src is null with bytes " + std::to_string(bytes));
  PK_ASSIGN(const std::uint64_t offset, require_heap(to, bytes, "dst"));
  return submit({backend_.get(), stream, PutWork{offset, static_cast<const std::byte*>(from), bytes, peer}});
}

Status Communicator::signal(int peer, int index, pkcommStream_t stream) {
  PK_TRY(ready());
  PK_TRY(require_rank("peer", peer));
  if (index < 0 || index >= kSignals) {
    return Status(pkcommInvalidArgument, "index is " + std::to_string(index) + "; allowed: 0..15");
  }
  return submit({backend_.get(), stream, SignalWork{peer, index}});
}

Status Communicator::wait_signal(int peer, int index, std::uint64_t arrivals, pkcommStream_t stream) {
  PK_TRY(ready());
  PK_TRY(require_rank("peer", peer));
  if (index < 0 || index >= kSignals) {
    return Status(pkcommInvalidArgument, "index is " + std::to_string(index) + "; allowed: 0..15");
  }
  return submit({backend_.get(), stream, WaitSignalWork{peer, index, arrivals}});
}

}  // namespace pkcomm
