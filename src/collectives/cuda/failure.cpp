// What a rank's kernels, its peers and its host have told, in the words of the protocol's reports.
#include <chrono>

#include "base/log.hpp"
#include "collectives/cuda/cuda_backend.hpp"
#include "collectives/describe.hpp"
#include "protocol/reports.hpp"

namespace pkcomm::cuda {
namespace {

struct Word {
  pkcommResult_t result;
  int rank;
};
/// {result: 32, rank + 1: 32}, as verdicts and poison are.
Word split(std::uint64_t word) {
  return {static_cast<pkcommResult_t>(word >> 32), static_cast<int>(static_cast<std::uint32_t>(word)) - 1};
}

// A copy takes some 15 us: a thousandth of a busy thread's time at most.
constexpr std::int64_t kLookEveryMs = 20;

std::int64_t milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::uint64_t acquire(const std::uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

}  // namespace

Status CudaBackend::failure() const {
  if (!failed_.load(std::memory_order_acquire)) {
    // Acquire half of [error]: the record is complete.
    if (acquire(words_->error.complete) != 0) {
      remember(words_of(words_->error, rank()));
    } else if (const std::uint64_t verdict = acquire(words_->verdict); verdict != 0) {
      remember(words_of_verdict(verdict));
    } else {
      // A peer's poison lies in device memory: it costs a copy to look at it, so not at every call.
      const std::int64_t now_ms = milliseconds();
      if (now_ms - looked_ms_.load(std::memory_order_relaxed) < kLookEveryMs) return {};
      look_for_poison();
      if (!failed_.load(std::memory_order_acquire)) return {};
    }
  }
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

Status CudaBackend::look() {
  if (Status known = failure(); !known.ok()) return known;
  look_for_poison();
  return failure();
}

void CudaBackend::look_for_poison() const {
  // A rank whose kernels all ended well hears of its peers' failures by their poison alone.
  looked_ms_.store(milliseconds(), std::memory_order_relaxed);
  std::uint64_t poison = 0;
  const auto* const word = reinterpret_cast<const std::byte*>(&options_.view.control(rank())->poison);
  // Where the device tells no more, that is the failure: a kernel's fault, of any communicator, ends its whole context.
  if (Status read = device_.read(&poison, word, sizeof poison); !read.ok()) return remember(std::move(read));
  if (poison != 0) remember(words_of_poison(split(poison).result, split(poison).rank));
}

void CudaBackend::remember(Status status) const {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  log(status.code() == pkcommAborted ? LogLevel::kInfo : LogLevel::kWarn, status.message());
  first_failure_ = std::move(status);
  failed_.store(true, std::memory_order_release);
}

Status CudaBackend::words_of_verdict(std::uint64_t verdict) const {
  const auto [result, rank] = split(verdict);
  return Status(result, result == pkcommAborted ? reports_.aborted() : reports_.gave_up(rank, ""));
}

Status CudaBackend::words_of_poison(pkcommResult_t result, int peer) const {
  // The peer's own record, where its kernels and not its host gave up.
  const View& view = options_.view;
  const auto words = copy_of<DeviceWords>(view.at(peer, view.layout.own));
  const ErrorRecord& error = words.error;
  const bool own_words =
      error.complete != 0 && error.cause != Cause::kPoison && error.cause != Cause::kVerdict;
  if (own_words) return Status(result, reports_.gave_up(peer, words_of(error, peer).message()));
  if (result == pkcommAborted) return Status(result, Reports(peer, options_.pids, &describe_call).aborted());
  return Status(result, reports_.gave_up(peer, pkcommGetErrorString(result)));
}

Status CudaBackend::words_of(const ErrorRecord& error, int rank) const {
  const View& view = options_.view;
  const Reports reports(rank, options_.pids, &describe_call);
  switch (error.cause) {
    case Cause::kVerdict:
      return words_of_verdict(acquire(words_->verdict));
    case Cause::kPoison:
      return words_of_poison(error.result, error.peer);
    case Cause::kLeft:
      return Status(error.result, reports.left(error.peer));
    case Cause::kConcurrent:
      return Status(error.result,
                    "rank " + std::to_string(rank) + ": operation " + std::to_string(error.operation) +
                        " started beside another one of this communicator; replays of graphs on "
                        "several streams must be ordered by their user");
    case Cause::kMismatch:
      if (error.operation == 0) {
        return Status(error.result, reports.rank_name(error.peer) + " sends " + std::to_string(error.seen) +
                                        " bytes, this rank (" + std::to_string(rank) + ") receives " +
                                        std::to_string(error.wanted));
      }
      return Status(error.result,
                    reports.mismatch(error.peer, copy_of<CallRecords>(view.call(error.peer, 0)),
                                     copy_of<CallRecords>(view.call(rank, 0)), error.operation));
    case Cause::kDeadline: {
      auto call = copy_of<CallRecord>(view.call(rank, error.operation));
      if (operation_of(call.word) != error.operation) call = CallRecord{};
      const auto entered = copy_of<std::uint64_t>(view.progress(rank, error.peer));
      const Reports::Awaited awaited{error.peer, operation_of(entered)};
      return Status(error.result, reports.timeout(call, {&awaited, 1}, error.phase, options_.timeout_ms));
    }
  }
  return Status(pkcommInternalError, "the device gives a cause that this host does not know");
}

}  // namespace pkcomm::cuda
