// A CUDA driver for tests, on the processor: it stands behind the library's table of driver functions
// (platform/cuda/driver.hpp). Memory is memfd and mmap, so what is mapped can be read and written, by this process and by
// those it passes descriptors to; streams are in order and immediate; kernels are whatever on_launch does.
//
// It is stricter than a driver: each use that a driver would forbid, or permit and punish later (a handle after its
// release, a mapping without access, a copy from pageable memory, a launch of a kernel that was not loaded before), fails
// and is noted in faults().
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pkcomm::test {

struct FakeState;

struct FakeThread {
  std::vector<CUcontext> contexts{};  // the last one is current
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool operator==(const FakeThread&) const = default;
};

struct FakeLaunch {
  std::string kernel{};
  int device = 0;
  CUlaunchConfig config{};  // its `attrs` are in `attributes`
  std::vector<CUlaunchAttribute> attributes{};
  bool captured = false;  // then it was not run
};

struct FakeOptions {
  int devices = 2;
  int driver_version = 13000;
  CUresult init_result = CUDA_SUCCESS;
  std::size_t granularity = std::size_t{2} << 20;
  bool fabric_offered = false;                          // as the device's attribute says
  bool fabric_works = false;                            // whether cuMemCreate then accepts it
  std::set<std::pair<int, int>> without_peer_access{};  // {device, peer}
  std::set<std::string> missing{};                      // functions that this driver has not got
  std::set<std::string> kernels{};                      // that are in every image; empty: any
  std::map<CUdevice_attribute, int> attributes{};       // beyond and above what it says by itself
  /// Runs a kernel: the launch, and its parameters as cuLaunchKernelEx got them.
  std::function<void(const FakeLaunch&, void** parameters)> on_launch{};
};

/// While one lives, it is the process's driver; one at a time.
class FakeDriver {
 public:
  explicit FakeDriver(FakeOptions options = {});
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;
  ~FakeDriver();

  static std::array<std::byte, 16> uuid(int device);

  /// Calls so far, but for those that tell an error's name.
  std::size_t calls() const;
  /// Lets the n-th call from now (1: the next) fail. A call that gives something back does so all the same and fails
  /// afterwards, as a driver's does that reports another call's fault.
  void fail_call(std::size_t n, CUresult result);
  /// The same for the n-th call of one function.
  void fail_call(const std::string& name, std::size_t n, CUresult result);
  /// The name of the call that failed so; empty while none has.
  std::string failed_call() const;

  /// How often each function was called.
  std::map<std::string, std::size_t> calls_by_name() const;
  /// How often each function was looked up.
  std::map<std::string, int> lookups() const;
  std::vector<std::string> faults() const;
  /// What is not given back: "2 mappings", ...; empty when all is.
  std::vector<std::string> live() const;
  std::vector<FakeLaunch> launches() const;

  /// The calling thread's state, seen and set without a call.
  FakeThread thread() const;
  void make_current(CUcontext context);

  /// Until end_capture(), `stream` is captured in the mode that restricts all threads; what is put on it is not run.
  void begin_capture(CUstream stream);
  void end_capture();
  /// Whether cuStreamQuery says that there is work left.
  void set_busy(CUstream stream, bool busy);

 private:
  std::unique_ptr<FakeState> state_;
};

}  // namespace pkcomm::test
