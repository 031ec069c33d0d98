// From a collective call to a launch: what is wrong with it, how it is to be done, what all ranks must agree on.
#include <algorithm>

#include "base/checked.hpp"
#include "base/hash.hpp"
#include "collectives/descriptors.hpp"
#include "comm/communicator.hpp"
#include "comm/group.hpp"
#include "numerics/dispatch_type.hpp"

namespace pkcomm {
namespace {

Status invalid(const char* argument, std::int64_t value, const std::string& allowed) {
  return Status(pkcommInvalidArgument,
                std::string(argument) + " is " + std::to_string(value) + "; allowed: " + allowed);
}

bool rooted(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kBroadcast ||
         collective == Collective::kGather || collective == Collective::kScatter;
}
/// Blocks in a buffer: one, or one for each rank.
bool many_in_send(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kAllToAll ||
         collective == Collective::kScatter;
}
bool many_in_recv(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kAllToAll ||
         collective == Collective::kGather;
}

std::uint64_t fingerprint_of(const Operation& op, const dispatch::Plan& plan) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(op.collective), op.count);
  hash = mix(hash, static_cast<std::uint64_t>(op.dtype) << 32 | static_cast<std::uint64_t>(op.kind) << 16 |
                       static_cast<std::uint64_t>(op.root));
  hash =
      mix(hash, static_cast<std::uint64_t>(plan.algorithm) << 32 |
                    static_cast<std::uint64_t>(plan.ctas) << 1 | static_cast<std::uint64_t>(plan.zero_copy));
  hash = mix(mix(mix(hash, op.chunk), op.send_offset), op.recv_offset);
  return hash >> 48;
}

}  // namespace

Status Communicator::require_rank(const char* argument, int value) const {
  if (value >= 0 && value < nranks_) return {};
  return invalid(argument, value, "0.." + std::to_string(nranks_ - 1));
}

dispatch::Request Communicator::request_for(Collective collective, std::size_t count, pkcommDataType_t dtype,
                                            pkcommRedOp_t op) const {
  dispatch::Request request;
  request.collective = collective;
  request.bytes = count * numerics::element_size(dtype);
  if (sized_by_blocks(collective)) request.bytes *= static_cast<std::size_t>(nranks_);
  request.dtype = dtype;
  request.kind = numerics::reduce_kind(op);
  request.nranks = nranks_;
  request.min_ctas = settings_.min_ctas;
  request.max_ctas = settings_.max_ctas;
  return request;
}

Status Communicator::check_overlap(const Call& call, std::uint64_t send_bytes, std::uint64_t recv_bytes,
                                   std::uint64_t block) const {
  const auto send = reinterpret_cast<std::uintptr_t>(call.send);
  const auto recv = reinterpret_cast<std::uintptr_t>(call.recv);
  if (call.send == nullptr || call.recv == nullptr) return {};
  if (send + send_bytes <= recv || recv + recv_bytes <= send) return {};
  const std::uint64_t at = static_cast<std::uint64_t>(rank_) * block;
  bool in_place = send == recv;
  if (call.collective == Collective::kAllGather || call.collective == Collective::kGather)
    in_place = send == recv + at;
  if (call.collective == Collective::kReduceScatter || call.collective == Collective::kScatter) {
    in_place = recv == send + at;
  }
  if (call.collective == Collective::kAllToAll) in_place = false;
  if (in_place) return {};
  return Status(pkcommInvalidArgument, std::string(name(call.collective)) + ": send [" +
                                           std::to_string(send) + ", +" + std::to_string(send_bytes) +
                                           ") and recv [" + std::to_string(recv) + ", +" +
                                           std::to_string(recv_bytes) + ") overlap other than in place");
}

Status Communicator::collective(const Call& call) {
  PK_TRY(ready());
  const bool combines = reduces(call.collective);
  const std::size_t element = numerics::element_size(call.dtype);
  if (element == 0) return invalid("dtype", call.dtype, "the values of pkcommDataType_t");
  const PreMulSum* premul = nullptr;
  if (combines && (call.op < 0 || call.op >= PKCOMM_BUILTIN_OPS)) {
    const auto found = ops_.find(call.op);
    if (found == ops_.end())
      return invalid("op", call.op, "the values of pkcommRedOp_t, or one made for this communicator");
    premul = &found->second;
    if (premul->dtype != call.dtype) {
      return invalid("dtype", call.dtype,
                     std::string(numerics::name(premul->dtype)) + ", which the operation was made for");
    }
  }
  if (rooted(call.collective)) PK_TRY(require_rank("root", call.root));
  const auto bytes = checked::multiply<std::uint64_t>(call.count, element);
  const auto all_bytes =
      bytes ? checked::multiply<std::uint64_t>(*bytes, static_cast<std::uint64_t>(nranks_)) : bytes;
  if (!all_bytes || *all_bytes > INT64_MAX) {
    return Status(pkcommInvalidArgument, "count is " + std::to_string(call.count) + "; " +
                                             std::to_string(nranks_) + " times its " +
                                             std::to_string(element) + "-byte elements exceed 2^63 bytes");
  }
  const bool is_barrier = call.collective == Collective::kBarrier;
  if (call.count == 0 && !is_barrier) return {};

  const bool is_root = rank_ == call.root;
  const bool needs_send =
      !is_barrier &&
      (is_root || (call.collective != Collective::kBroadcast && call.collective != Collective::kScatter));
  const bool needs_recv =
      !is_barrier &&
      (is_root || (call.collective != Collective::kReduce && call.collective != Collective::kGather));
  const std::uint64_t send_bytes = many_in_send(call.collective) ? *all_bytes : *bytes;
  const std::uint64_t recv_bytes = many_in_recv(call.collective) ? *all_bytes : *bytes;
  if (needs_send && call.send == nullptr)
    return Status(pkcommInvalidArgument, "send is null with count " + std::to_string(call.count));
  if (needs_recv && call.recv == nullptr)
    return Status(pkcommInvalidArgument, "recv is null with count " + std::to_string(call.count));
  if (needs_send && needs_recv) PK_TRY(check_overlap(call, send_bytes, recv_bytes, *bytes));

  // All ranks must mean the same place where peers touch a buffer. The others are each rank's own business: all_gather's
  // send, where it is in place, lies elsewhere on every rank.
  dispatch::Request request = request_for(call.collective, call.count, call.dtype, call.op);
  const WindowNeeds needs = window_needs(call.collective);
  std::optional<std::uint64_t> send_offset, recv_offset;
  if (needs.send) send_offset = heap_->offset_of(call.send, send_bytes);
  if (needs.recv) recv_offset = heap_->offset_of(call.recv, recv_bytes);
  request.send_window = send_offset.has_value();
  request.recv_window = recv_offset.has_value();
  PK_ASSIGN(const dispatch::Plan plan, dispatcher_->plan(request));

  CollectiveWork work{{}, plan.algorithm, std::max(plan.ctas, 1)};
  Operation& op = work.op;
  op.collective = call.collective;
  op.dtype = call.dtype;
  op.kind = numerics::reduce_kind(call.op);
  op.root = rooted(call.collective) ? call.root : 0;
  op.send = needs_send ? static_cast<const std::byte*>(call.send) : nullptr;
  op.recv = needs_recv ? static_cast<std::byte*>(call.recv) : nullptr;
  op.count = call.count;
  op.block = op.block_stride = *bytes;
  op.chunk = plan.chunk_bytes;
  op.zero_copy = plan.zero_copy;
  // Compared, whether or not this plan makes use of it: a fault should not wait for another size to show.
  op.send_offset = send_offset.value_or(0);
  op.recv_offset = recv_offset.value_or(0);
  if (premul != nullptr) {
    op.scalar = premul->scalar;
    op.scalar_at = premul->device_scalar;
  }
  op.fingerprint = fingerprint_of(op, plan);
  return submit({backend_.get(), call.stream, std::move(work)});
}

Status Communicator::submit(Launch launch) {
  if (Status failure = backend_->failure(); !failure.ok()) return failure;
  PK_TRY(backend_->check(launch.stream));
  if (Group* const group = Group::open()) {
    group->add(std::move(launch));
    return {};
  }
  return backend_->launch(std::move(launch));
}

Result<pkcommRedOp_t> Communicator::create_premul_sum(const void* scalar, pkcommDataType_t dtype,
                                                      pkcommScalarResidence_t residence) {
  PK_TRY(ready());
  if (numerics::element_size(dtype) == 0) return invalid("dtype", dtype, "the values of pkcommDataType_t");
  if (residence != pkcommScalarHostImmediate && residence != pkcommScalarDevice) {
    return invalid("residence", residence, "the values of pkcommScalarResidence_t");
  }
  const bool later = residence == pkcommScalarDevice;
  const auto op = static_cast<pkcommRedOp_t>(next_op_++);
  ops_[op] = {dtype, later ? 0 : numerics::scalar_word(dtype, scalar), later ? scalar : nullptr};
  return op;
}

Status Communicator::destroy_op(pkcommRedOp_t op) {
  if (ops_.erase(op) == 0)
    return invalid("op", op, "an operation made for this communicator and not yet destroyed");
  return {};
}

Result<dispatch::Explanation> Communicator::explain(const pkcommExplainRequest_t& request) const {
  PK_TRY(ready());
  auto asked =
      request_for(static_cast<Collective>(request.collective), request.count, request.dtype, request.op);
  asked.send_window = request.send_window != 0;
  asked.recv_window = request.recv_window != 0;
  return dispatcher_->explain(asked);
}

}  // namespace pkcomm
