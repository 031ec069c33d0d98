// From an operation to its schedule, CTA after CTA; calls too long for one operation's rounds become several.
#include "collectives/host/executor.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/direct_staged.hpp"
#include "collectives/host/schedules.hpp"
#include "numerics/float_environment.hpp"

namespace pkcomm::host {

Executor::Executor(const View& view, WaiterOptions options, std::optional<std::uint64_t> seed)
    : waiter_(view, std::move(options)),
      late_(seed.value_or(0) + static_cast<std::uint64_t>(view.rank)),
      all_late_(seed.has_value()) {}

Policy Executor::policy(int ctas) { return Policy(waiter_, late_, all_late_, &engine_, ctas); }

bool Executor::begin(const Operation& op, std::uint64_t word) {
  return waiter_.begin({word, op.count, static_cast<std::int32_t>(op.collective), op.dtype,
                        static_cast<std::int32_t>(op.kind), op.root, op.fingerprint});
}

Status Executor::run(const Operation& op, Algorithm algorithm, int ctas) {
  const View& view = waiter_.view();
  std::uint64_t longest = std::max<std::uint64_t>(op.block, 1);
  const bool direct = algorithm == Algorithm::kDirectLdst || algorithm == Algorithm::kDirectTma;
  if (!op.zero_copy && (direct || algorithm == Algorithm::kCopyEngine)) {
    longest = longest_block(direct ? view.layout.slot_bytes : view.layout.engine_bytes, op.chunk, ctas);
  }
  std::uint64_t done = 0;
  do {
    Operation segment = op;
    segment.block = std::min(longest, op.block - done);
    segment.send = op.send == nullptr ? nullptr : op.send + done;
    segment.recv = op.recv == nullptr ? nullptr : op.recv + done;
    if (!run_segment(segment, algorithm, ctas)) return waiter_.report();
    done += segment.block;
  } while (done < op.block);
  return {};
}

bool Executor::run_segment(const Operation& op, Algorithm algorithm, int ctas) {
  const numerics::FloatEnvironment environment;  // for the schedules that reduce word by word
  Policy x = policy(ctas);
  if (!begin(op, next_turn(x, op).word)) return false;
  for (int cta = 0; cta < ctas; ++cta) {
    x.set_cta(cta);
    bool ok = false;
    switch (algorithm) {
      case Algorithm::kOneShotLl:
        ok = run_one_shot_ll(x, op);
        break;
      case Algorithm::kTwoShotLl:
        ok = run_two_shot_ll(x, op);
        break;
      case Algorithm::kDirectLdst:
        ok = run_direct_ldst(x, op);
        break;
      case Algorithm::kDirectTma:
        ok = run_direct_tma(x, op);
        break;
      case Algorithm::kCopyEngine:
        ok = run_copy_engine(x, op);
        break;
      case Algorithm::kMultimemEmulated:
        ok = run_multimem_emulated(x, op);
        break;
      case Algorithm::kMultimem:
      case Algorithm::kPairwise:
        waiter_.fail(pkcommInternalError, "the host platform was given an algorithm that it does not run");
    }
    if (!ok) return false;
  }
  return true;
}

Status Executor::run(std::span<Transfer> transfers) {
  Operation op;
  op.collective = Collective::kSendRecv;
  for (const Transfer& transfer : transfers) op.count += transfer.bytes;
  Policy x = policy(1);
  if (!begin(op, 0) || !transfer_all(x, transfers) || !waiter_.end()) return waiter_.report();
  return {};
}

Status Executor::run_all_to_all_v(const Operation& op, std::span<Transfer> transfers) {
  Policy x = policy(1);
  if (!begin(op, next_turn(x, op).word)) return waiter_.report();
  const Turn turn = enter<true>(x, op);
  if (!transfer_all(x, transfers) || !x.leave(turn.word, false)) return waiter_.report();
  return {};
}

bool Executor::transfer_all(Policy& x, std::span<Transfer> transfers) {
  // The head of each (peer, direction) advances; those behind it wait for their turn.
  const auto nranks = static_cast<std::size_t>(waiter_.view().nranks);
  std::vector<std::vector<Transfer*>> lanes(nranks * 2);
  for (Transfer& transfer : transfers) {
    lanes[static_cast<std::size_t>(transfer.peer) * 2 + (transfer.sends ? 1 : 0)].push_back(&transfer);
  }
  const auto self = static_cast<std::size_t>(waiter_.view().rank) * 2;
  for (std::size_t i = 0; i < lanes[self].size(); ++i) {
    x.copy(lanes[self][i]->data, lanes[self + 1][i]->data, lanes[self][i]->bytes);
  }
  x.settle();
  lanes[self].clear();
  lanes[self + 1].clear();
  std::erase_if(lanes, [](const auto& lane) { return lane.empty(); });
  std::vector<std::span<Transfer*>> open(lanes.begin(), lanes.end());
  std::vector<int> peers;
  while (!open.empty()) {
    // One round over the open lanes; true when any of them got on.
    const auto advance = [&] {
      bool some = false;
      for (std::span<Transfer*>& left : open) {
        const Progress progress = step(x, *left.front());
        some = some || progress != Progress::kNone;
        if (progress == Progress::kDone) left = left.subspan(1);
      }
      x.settle();
      std::erase_if(open, [](const auto& left) { return left.empty(); });
      return some || x.failed();
    };
    peers.clear();
    for (const std::span<Transfer*>& left : open) peers.push_back(left.front()->peer);
    if (!waiter_.wait(advance, peers, "transfer") || x.failed()) return false;
  }
  return true;
}

Status Executor::put(std::uint64_t offset, const std::byte* from, std::uint64_t bytes, int peer) {
  Operation op;
  op.count = bytes;
  if (!begin(op, 0)) return waiter_.report();
  Policy x = policy(1);
  x.copy(waiter_.view().at(peer, offset), from, bytes);
  x.settle();
  return {};
}

Status Executor::signal(int peer, int index) {
  if (!begin(Operation{}, 0)) return waiter_.report();
  Policy x = policy(1);
  std::uint64_t* const word = waiter_.view().signal(peer, index, waiter_.view().rank);
  // This rank is the word's only writer. Release half of [signal]: the puts before it; acquired by wait_signal.
  x.publish(word, load_relaxed(word) + 1, peer);
  return {};
}

Status Executor::wait_signal(int peer, int index, std::uint64_t arrivals) {
  if (!begin(Operation{}, 0)) return waiter_.report();
  Policy x = policy(1);
  const View& view = waiter_.view();
  std::uint64_t* const waited = view.waited(view.rank, index, peer);
  if (!x.await(view.signal(view.rank, index, peer), *waited + arrivals, peer, "signal"))
    return waiter_.report();
  *waited += arrivals;
  return {};
}

}  // namespace pkcomm::host
