// What a rank's kernels and its host tell each other: how the host ends all waits, and how the device says what went wrong.
#pragma once

#include <cstdint>

#include "pkcomm/pkcomm.h"

namespace pkcomm::cuda {

/// What ended a wait, or kept an operation from starting.
enum class Cause : std::int32_t {
  kMismatch,    // the peer called something else
  kLeft,        // the peer has left
  kDeadline,    // the peer did nothing in time
  kPoison,      // the peer gave up before
  kVerdict,     // this rank's host said so
  kConcurrent,  // another operation of the communicator is under way
};

/// Host-mapped; what the host turns into the communicator's asynchronous error. Zero before the first launch.
struct ErrorRecord {
  std::uint64_t complete;   // written last
  std::uint64_t operation;  // that this rank was in; 0: one that has no number
  std::uint64_t wanted, seen;
  pkcommResult_t result;
  Cause cause;
  std::int32_t peer;  // that it waited for, or that gave up before
  char phase[32];
};

/// A rank's words in its own device's memory, at Layout::own. Zero before the first launch.
struct DeviceWords {
  std::uint64_t begun;          // operations that have begun, ever
  std::uint64_t error_claimed;  // who writes the error record
  std::uint32_t ctas_left;      // CTAs that have left the running operation
  ErrorRecord error;            // the same record again, for the peers' hosts
};

/// What a kernel needs of its rank's communicator beside the View. By value.
struct DeviceLink {
  DeviceWords* words = nullptr;
  /// {result: 32, rank + 1: 32}, in host-mapped memory: not zero once the host ends all waits, because of that rank.
  const std::uint64_t* verdict = nullptr;
  ErrorRecord* error = nullptr;
  std::uint64_t deadline_ns = 0;  // of one wait; 0: none
};

}  // namespace pkcomm::cuda
