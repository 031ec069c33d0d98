// The inside of the fake driver: its objects, and what every one of its functions does before and after its own work.
#pragma once

#include <cudaTypedefs.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "platform/cuda/symbols.hpp"
#include "support/fake_driver.hpp"

namespace pkcomm::test {

struct FakeState {
  struct Allocation {
    int descriptor;
    std::size_t bytes;
  };
  struct Mapping {
    std::size_t bytes;
    std::set<int> devices;  // that have access
  };
  struct Pinned {
    std::size_t bytes;
    int device;  // in whose context it was made, with which it goes
  };
  struct Stream {
    int device;
    bool busy = false;
  };
  struct Module {
    int device;
  };
  struct Function {
    CUmodule module;
    std::string name;
    bool loaded = false;
    std::map<CUfunction_attribute, int> attributes;
  };

  explicit FakeState(FakeOptions chosen) : options(std::move(chosen)) {}

  /// A handle that was never used before, so that a stale one is noticed.
  template <class Handle>
  Handle fresh() {
    next_handle += 16;
    if constexpr (std::is_pointer_v<Handle>) {
      return reinterpret_cast<Handle>(next_handle);
    } else {
      return static_cast<Handle>(next_handle);
    }
  }
  CUresult fault(std::string what, CUresult result = CUDA_ERROR_INVALID_VALUE) {
    faults.push_back(std::move(what));
    return result;
  }
  /// Counts a call of `name`; whether it is to fail.
  bool fails(const char* name) {
    const bool its_turn = ++calls == fail_at;
    const bool named = ++calls_by_name[name] == fail_at_of_name && fail_name == name;
    if (its_turn || named) failed_call = name;
    return its_turn || named;
  }
  FakeThread& thread() { return threads[std::this_thread::get_id()]; }
  CUcontext current() {
    const FakeThread& mine = thread();
    return mine.contexts.empty() ? nullptr : mine.contexts.back();
  }
  /// The device of the current context, which is one.
  int device() { return contexts.at(current()); }
  /// NULL and CUDA's two other names of default streams are streams of the current context.
  bool is_default(CUstream stream) const { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }
  bool is_stream(CUstream stream) const { return is_default(stream) || streams.contains(stream); }
  bool is_captured(CUstream stream) const { return capturing && stream == captured; }
  /// The mapping that has all of the range in it, or null.
  const Mapping* find_mapping(CUdeviceptr at, std::size_t bytes) const;

  const FakeOptions options;
  std::mutex mutex;
  std::map<std::string, int> lookups;
  std::vector<std::string> faults;
  std::size_t calls = 0;
  std::map<std::string, std::size_t> calls_by_name;
  std::size_t fail_at = 0;
  std::string fail_name;
  std::size_t fail_at_of_name = 0;
  CUresult fail_with = CUDA_SUCCESS;
  std::string failed_call;
  bool initialized = false;

  std::uintptr_t next_handle = 0x1000;
  std::map<std::thread::id, FakeThread> threads;
  std::map<int, int> retained;  // primary contexts: device, how often
  std::map<CUcontext, int> contexts;
  std::map<CUmemGenericAllocationHandle, Allocation> allocations;
  std::map<CUdeviceptr, std::size_t> reservations;
  std::map<CUdeviceptr, Mapping> mappings;
  std::map<std::uintptr_t, Pinned> pinned;
  std::map<CUstream, Stream> streams;
  std::set<CUevent> events;
  std::map<CUmodule, Module> modules;
  std::map<CUfunction, Function> functions;
  std::vector<FakeLaunch> launches;
  bool capturing = false;
  CUstream captured = nullptr;
  std::function<void()> afterwards;  // runs when the lock is given back: the application's own code
};

namespace fake_cuda {

/// The installed driver's state; null: none.
extern FakeState* installed;

enum Traits : unsigned {
  kPlain = 0,
  kNeedsContext = 1,
  kUnsafe = 2,  // forbidden while something is captured, unless the thread is relaxed
  kReleases = 4,
};

/// Runs `body(state)` as the call `name`: counted, failing when it is its turn, checked for what `traits` say.
template <class Body>
CUresult call(const char* name, unsigned traits, Body body) {
  if (installed == nullptr) return CUDA_ERROR_DEINITIALIZED;
  FakeState& state = *installed;
  std::function<void()> afterwards;
  const auto locked = [&]() -> CUresult {
    const std::lock_guard lock(state.mutex);
    const bool fails = state.fails(name);
    if (fails && (traits & kReleases) == 0) return state.fail_with;
    if (!state.initialized)
      return state.fault(std::string(name) + " before cuInit", CUDA_ERROR_NOT_INITIALIZED);
    if ((traits & kNeedsContext) != 0 && state.current() == nullptr) {
      return state.fault(std::string(name) + " without a current context", CUDA_ERROR_INVALID_CONTEXT);
    }
    if ((traits & kUnsafe) != 0 && state.capturing && state.thread().mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
      return state.fault(std::string(name) + " during a capture", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    const CUresult result = body(state);
    afterwards = std::exchange(state.afterwards, nullptr);
    return fails ? state.fail_with : result;
  };
  const CUresult result = locked();
  if (afterwards) afterwards();
  return result;
}

// The functions of the table.
#define PK_FAKE_DECLARE(name, version, need) std::remove_pointer_t<PFN_##name##_v##version> name;
PK_CUDA_DRIVER_SYMBOLS(PK_FAKE_DECLARE)
#undef PK_FAKE_DECLARE

}  // namespace fake_cuda
}  // namespace pkcomm::test
