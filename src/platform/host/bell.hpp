// How a rank's waiters sleep and are woken: `sleepers` and `bell` of its control block, shared with all processes. A
// writer that has stored a word looks at `sleepers` and makes a system call only if somebody sleeps. No fence stands
// between its store and its look, so that the fast path pays nothing; a sleeper may therefore be missed once, which its
// short sleeps make good: they stay short until one has passed in full. Who looked before the sleeper had registered has
// stored its word by then, and a later writer sees the sleeper. Modelled in
// tests/model/wakeup.pml.
#pragma once

#include <cstdint>

#include "platform/host/atomic_word.hpp"
#include "protocol/layout.hpp"

namespace pkcomm::host {

/// Sleeps until the bell of `control` is rung after `seen` was read, or for `timeout_us`; false: for the whole time.
bool sleep_on_bell(ControlBlock* control, std::uint32_t seen, std::int64_t timeout_us) noexcept;
/// Wakes whoever sleeps there.
void ring_bell(ControlBlock* control) noexcept;

inline void wake_sleepers(ControlBlock* control) noexcept {
  if (load_relaxed(&control->sleepers) != 0) ring_bell(control);
}

}  // namespace pkcomm::host
