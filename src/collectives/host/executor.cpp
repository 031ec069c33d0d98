// From an operation to its schedule, CTA after CTA.
#include "collectives/host/executor.hpp"

#include "collectives/host/schedules.hpp"
#include "collectives/segments.hpp"
#include "numerics/float_environment.hpp"

namespace pkcomm::host {

Executor::Executor(const View& view, WaiterOptions options, std::optional<std::uint64_t> seed)
    : waiter_(view, std::move(options)),
      late_(seed.value_or(0) + static_cast<std::uint64_t>(view.rank)),
      all_late_(seed.has_value()) {}

Policy Executor::policy(int ctas) { return Policy(waiter_, late_, all_late_, &engine_, ctas); }

bool Executor::begin(const Operation& op, std::uint64_t word) { return waiter_.begin(record_of(op, word)); }

Status Executor::run(const Operation& op, Algorithm algorithm, int ctas) {
  const bool ok = each_segment(waiter_.view(), op, algorithm, ctas, [&](const Operation& segment) {
    return run_segment(segment, algorithm, ctas);
  });
  return ok ? Status() : waiter_.report();
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

Status Executor::run(std::span<const Transfer> transfers) {
  Operation op;
  op.collective = Collective::kSendRecv;
  for (const Transfer& transfer : transfers) op.count += transfer.bytes;
  Policy x = policy(1);
  if (!begin(op, 0) || !transfer_all(x, transfers) || !waiter_.end()) return waiter_.report();
  return {};
}

Status Executor::run_all_to_all_v(const Operation& op, std::span<const Transfer> transfers) {
  Policy x = policy(1);
  if (!begin(op, next_turn(x, op).word)) return waiter_.report();
  const Turn turn = enter<true>(x, op);
  if (!transfer_all(x, transfers) || !x.leave(turn.word, false)) return waiter_.report();
  return {};
}

bool Executor::transfer_all(Policy& x, std::span<const Transfer> transfers) {
  struct Queue {
    Lane lane;
    std::vector<const Transfer*> left;  // the last one is next
  };
  const View& view = waiter_.view();
  std::vector<Queue> queues(static_cast<std::size_t>(view.nranks) * 2);
  for (auto next = transfers.rbegin(); next != transfers.rend(); ++next) {
    queues[static_cast<std::size_t>(next->peer) * 2 + (next->sends ? 1 : 0)].left.push_back(&*next);
  }
  const auto self = static_cast<std::size_t>(view.rank) * 2;
  for (std::size_t i = 0; i < queues[self].left.size(); ++i) {
    x.copy(queues[self].left[i]->data, queues[self + 1].left[i]->data, queues[self].left[i]->bytes);
  }
  x.settle();
  queues[self].left.clear();
  queues[self + 1].left.clear();
  std::erase_if(queues, [](const Queue& queue) { return queue.left.empty(); });
  for (Queue& queue : queues) queue.lane = open_lane(view, queue.left.back()->peer, queue.left.back()->sends);
  std::vector<int> peers;
  while (!queues.empty()) {
    // One round over the open lanes; true when any of them got on.
    const auto advance = [&] {
      bool some = false;
      for (Queue& queue : queues) {
        const Progress progress = step(x, queue.lane, *queue.left.back());
        some = some || progress != Progress::kNone;
        if (progress == Progress::kDone) queue.left.pop_back();
        if (queue.left.empty()) close_lane(x, queue.lane);
      }
      x.settle();
      std::erase_if(queues, [](const Queue& queue) { return queue.left.empty(); });
      return some || x.failed();
    };
    peers.clear();
    for (const Queue& queue : queues) peers.push_back(queue.lane.peer);
    if (!waiter_.wait(advance, peers, "transfer") || x.failed()) return false;
  }
  return true;
}

Status Executor::put(const PutWork& work) {
  Operation op;
  op.count = work.bytes;
  if (!begin(op, 0)) return waiter_.report();
  Policy x = policy(1);
  if (!put_bytes(x, work)) return waiter_.report();
  x.settle();
  return {};
}

Status Executor::signal(const SignalWork& work) {
  if (!begin(Operation{}, 0)) return waiter_.report();
  Policy x = policy(1);
  return raise_signal(x, work) ? Status() : waiter_.report();
}

Status Executor::wait_signal(const WaitSignalWork& work) {
  if (!begin(Operation{}, 0)) return waiter_.report();
  Policy x = policy(1);
  return await_signal(x, work) ? Status() : waiter_.report();
}

}  // namespace pkcomm::host
