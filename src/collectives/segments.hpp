// Cuts a call into operations: one, as a rule; several where its blocks are longer than the rounds of one operation reach.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/algorithm.hpp"
#include "collectives/direct_staged.hpp"

namespace pkcomm {

/// Calls f(segment) for the operations that the call consists of, in order, as long as it returns true; at least once. The
/// cuts follow from what all ranks have in common.
template <class F>
bool each_segment(const View& view, const Operation& op, Algorithm algorithm, int ctas, const F& f) {
  std::uint64_t longest = std::max<std::uint64_t>(op.block, 1);
  const bool by_registers = algorithm == Algorithm::kDirectLdst || algorithm == Algorithm::kDirectTma;
  if (!op.zero_copy && (by_registers || algorithm == Algorithm::kCopyEngine)) {
    const Area area = by_registers ? Area::kRegister : Area::kCopyEngine;
    longest = longest_block(slot_bytes(view, area), op.chunk, ctas);
  }
  std::uint64_t done = 0;
  do {
    Operation segment = op;
    segment.block = std::min(longest, op.block - done);
    segment.send = op.send == nullptr ? nullptr : op.send + done;
    segment.recv = op.recv == nullptr ? nullptr : op.recv + done;
    if (!f(segment)) return false;
    done += segment.block;
  } while (done < op.block);
  return true;
}

}  // namespace pkcomm
