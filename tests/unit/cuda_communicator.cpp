// The life of communicators of two ranks on the fake driver, through the public interface: what it leaves behind, and that
// whichever call of the driver fails, it is named, nothing hangs or leaks, and the next communicator works.
//
// The fake runs no kernels. A process chooses its platform and loads its kernels once, so each life is a child's. The
// driver itself is started before it begins (cuda_driver.cpp): what it then says holds for the process. One file, since its
// cases are one life, seen to succeed and to fail.
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "collectives/cuda/kernels.hpp"
#include "pkcomm/pkcomm.h"
#include "platform/cuda/driver.hpp"
#include "support/catch.hpp"
#include "support/fake_driver.hpp"
#include "support/processes.hpp"

using namespace pkcomm;
using test::FakeDriver;
using test::FakeLaunch;
using test::FakeThread;
using test::Process;
using test::Shared;
using test::SharedText;

namespace {

constexpr int kRanks = 2;
/// Of each wait where a call fails: a rank may wait in vain for one that has failed before it joined.
constexpr std::int64_t kSoonMs = 2000;
/// Far beyond what a life takes if each of its waits ends by its deadline.
constexpr std::int64_t kHangMs = 30000;
constexpr std::size_t kBytes = 4096, kElements = kBytes / sizeof(float);

std::string kept_modules() { return std::to_string(2 * cuda::kernel_images().size()) + " modules"; }
/// What the library keeps for the process by design (platform/cuda/device.hpp): of each device the primary context, the
/// stream and the pinned memory of its own copies, and the kernels.
std::vector<std::string> kept() { return {"2 contexts", "2 pinned buffers", "2 streams", kept_modules()}; }
/// A rank that cannot enter its context in the end can give back nothing that is in it.
std::vector<std::string> kept_and_a_backend() {
  return {"2 contexts", "3 pinned buffers", "3 streams", "3 events", kept_modules()};
}

/// Calls that give something back, or put the caller's state back, fail without consequence but for the log.
bool is_harmless(const std::string& call) {
  static const std::set<std::string> calls = {
      "cuCtxPopCurrent", "cuEventDestroy",  "cuMemAddressFree",
      "cuMemFreeHost",   "cuMemRelease",    "cuMemUnmap",
      "cuModuleUnload",  "cuStreamDestroy", "cuThreadExchangeStreamCaptureMode"};
  return calls.contains(call);
}

/// Open descriptors of device memory. Others are none of the driver's: an id whose ranks did not all come keeps its
/// listener, to tell those who come late.
std::ptrdiff_t memory_descriptors() {
  return std::count_if(std::filesystem::directory_iterator("/proc/self/fd"), {}, [](const auto& entry) {
    std::error_code gone;  // the directory's own
    return std::filesystem::read_symlink(entry, gone).string().find("fake GPU memory") != std::string::npos;
  });
}

/// What the program has of its own: contexts and streams, two a device.
class Program {
 public:
  explicit Program(const cuda::Driver& driver) : driver_(driver) {
    for (int device = 0; device < kRanks; ++device) {
      const auto i = static_cast<std::size_t>(device);
      driver_.cuDevicePrimaryCtxRetain(&contexts[i], device);
      driver_.cuCtxPushCurrent(contexts[i]);
      for (CUstream& stream : streams[i]) {
        driver_.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
      }
      pop();
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    for (int device = 0; device < kRanks; ++device) {
      const auto i = static_cast<std::size_t>(device);
      driver_.cuCtxPushCurrent(contexts[i]);
      for (const CUstream stream : streams[i]) driver_.cuStreamDestroy(stream);
      pop();
      driver_.cuDevicePrimaryCtxRelease(device);
    }
  }

  std::array<CUcontext, kRanks> contexts{};
  std::array<std::array<CUstream, 2>, kRanks> streams{};

 private:
  void pop() {
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent(&popped);
  }

  const cuda::Driver& driver_;
};

/// From the first unique id to the last destroy: a communicator of two threads with a device each, then one of a single
/// thread whose ranks share a device and a stream.
class Life {
 public:
  /// `limit_ms`: of each wait.
  Life(FakeDriver& fake, Program& program, std::int64_t limit_ms)
      : fake_(fake), program_(program), limit_ms_(limit_ms) {}

  void run() {
    run_threads();
    run_group();
  }

  const std::vector<std::string>& errors() const { return errors_; }      // of calls that have failed
  const std::vector<std::string>& problems() const { return problems_; }  // of which none may be
  bool failed_in_the_end() const { return failed_in_the_end_; }           // a call of the driver

 private:
  using Comms = std::array<pkcommComm_t, kRanks>;

  /// Notes how a call went, and whether the thread is as it was before.
  class Calls {
   public:
    explicit Calls(Life& life) : life_(life), before_(life.fake_.thread()) {}
    bool operator()(pkcommResult_t result, const std::string& what, const char* text = nullptr) {
      if (result != pkcommSuccess) {
        life_.add(life_.errors_, what + ": " + (text != nullptr ? text : pkcommGetLastError(nullptr)));
      }
      if (life_.fake_.thread() != before_) life_.add(life_.problems_, what + " changes the caller's state");
      return result == pkcommSuccess;
    }
    /// The asynchronous error counts as well.
    void end_work(pkcommComm_t comm, pkcommStream_t stream) {
      (*this)(pkcommStreamSynchronize(stream), "stream synchronize");
      pkcommResult_t asynchronous = pkcommSuccess;
      (*this)(pkcommCommGetAsyncError(comm, &asynchronous), "get error");
      (*this)(asynchronous, "asynchronously", pkcommGetLastError(comm));
      (*this)(pkcommCommFinalize(comm), "finalize");
    }

   private:
    Life& life_;
    const FakeThread before_;
  };

  pkcommConfig_t config(int device) const {
    pkcommConfig_t config = PKCOMM_CONFIG_INITIALIZER;
    config.device = device;
    config.timeout_ms = limit_ms_;
    config.init_timeout_ms = limit_ms_;
    return config;
  }

  void run_threads() {
    pkcommUniqueId id{};
    Calls call(*this);
    if (!call(pkcommGetUniqueId(&id), "unique id")) return;
    Comms comms{};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        // One caller has no context, the other has that of a device which is not its rank's.
        if (rank == 1) fake_.make_current(program_.contexts[0]);
        run_rank(rank, id, comms[static_cast<std::size_t>(rank)]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    end(comms);
  }

  void run_rank(int rank, const pkcommUniqueId& id, pkcommComm_t& comm) {
    Calls call(*this);
    const pkcommConfig_t config = this->config(rank);
    if (!call(pkcommCommInitRankConfig(&comm, kRanks, id, rank, &config), "init")) return;
    void* heap = nullptr;
    if (!call(pkcommHeapAlloc(comm, kBytes, &heap), "heap alloc")) {
      const pkcommResult_t again = pkcommHeapAlloc(comm, kBytes, &heap);
      // What failed has changed nothing on any rank, unless the peer has failed in the last step of its start.
      if (again == pkcommAborted) return;
      if (again != pkcommSuccess) {
        return add(problems_, std::string("second heap alloc: ") + pkcommGetLastError(nullptr));
      }
    }
    const int peer = 1 - rank;
    std::array<float, kElements> other{};
    for (const CUstream stream : program_.streams[static_cast<std::size_t>(rank)]) {
      call(pkcommAllReduce(heap, heap, kElements, pkcommFloat32, pkcommSum, comm, stream), "all_reduce");
      call(pkcommGroupStart(), "group start");
      call(pkcommSend(heap, kElements, pkcommFloat32, peer, comm, stream), "send");
      call(pkcommRecv(other.data(), kElements, pkcommFloat32, peer, comm, stream), "recv");
      call(pkcommGroupEnd(), "send and recv");
      call(pkcommPut(other.data(), heap, kBytes, peer, comm, stream), "put");
      call(pkcommSignal(peer, 0, comm, stream), "signal");
      call(pkcommWaitSignal(peer, 0, 1, comm, stream), "wait_signal");
    }
    call.end_work(comm, program_.streams[static_cast<std::size_t>(rank)][0]);
  }

  void run_group() {
    pkcommUniqueId id{};
    Calls call(*this);
    if (!call(pkcommGetUniqueId(&id), "unique id")) return;
    Comms comms{};
    const pkcommConfig_t config = this->config(0);
    const CUstream stream = program_.streams[0][0];
    call(pkcommGroupStart(), "group start");
    for (int rank = 0; rank < kRanks; ++rank) {
      call(pkcommCommInitRankConfig(&comms[static_cast<std::size_t>(rank)], kRanks, id, rank, &config),
           "init");
    }
    if (call(pkcommGroupEnd(), "init as a group")) {
      std::array<float, kElements> send{}, recv{};
      call(pkcommGroupStart(), "group start");
      for (pkcommComm_t const comm : comms) {
        call(pkcommAllReduce(send.data(), recv.data(), kElements, pkcommFloat32, pkcommSum, comm, stream),
             "all_reduce");
      }
      call(pkcommGroupEnd(), "all_reduce on one stream");
      for (pkcommComm_t const comm : comms) call.end_work(comm, stream);
    }
    end(comms);
  }

  void end(const Comms& comms) {
    const bool failed_before = !fake_.failed_call().empty();
    Calls call(*this);
    for (pkcommComm_t const comm : comms) call(pkcommCommDestroy(comm), "destroy");
    if (!failed_before && !fake_.failed_call().empty()) failed_in_the_end_ = true;
  }

  void add(std::vector<std::string>& to, const std::string& text) {
    const std::lock_guard lock(mutex_);
    to.push_back(text);
  }

  FakeDriver& fake_;
  Program& program_;
  const std::int64_t limit_ms_;
  std::mutex mutex_;
  std::vector<std::string> errors_, problems_;
  bool failed_in_the_end_ = false;
};

/// What a child tells.
struct Report {
  SharedText problems;
  SharedText calls;  // "name count"
};

/// A child's own driver, program and report.
class Child {
 public:
  explicit Child(Report& report) : report_(report), driver_(start()), program_(std::in_place, *driver_) {}

  FakeDriver fake;

  void expect(bool condition, const std::string& otherwise) {
    if (!condition) report_.problems.add(otherwise);
  }
  void tell_call(const std::string& name, std::size_t count) {
    report_.calls.add(name + ' ' + std::to_string(count));
  }
  /// Lives once with no call failing.
  void live_well() {
    Life life(fake, *program_, test::kLimitMs);
    life.run();
    for (const auto& texts : {life.errors(), life.problems()}) {
      for (const std::string& text : texts) report_.problems.add("without a failing call: " + text);
    }
  }
  /// Lives once, with the n-th call of `name` failing.
  void live_badly(const std::string& name, std::size_t n, CUresult result) {
    fake.fail_call(name, n, result);
    Life life(fake, *program_, kSoonMs);
    life.run();
    const bool has_failed = !fake.failed_call().empty();
    fake.fail_call(0, CUDA_SUCCESS);
    for (const std::string& text : life.problems()) report_.problems.add(text);
    lost_context_ = name == "cuCtxPushCurrent" && life.failed_in_the_end();
    const bool named = std::any_of(life.errors().begin(), life.errors().end(), [&](const auto& error) {
      return error.find(name + ": CUDA") != std::string::npos;
    });
    expect(!has_failed || named || is_harmless(name) || life.failed_in_the_end(), "no error names the call");
    expect(named || life.errors().empty(), "errors that name another call");
    if (!named) {
      for (const std::string& error : life.errors()) report_.problems.add(error);
    }
  }
  /// What is left when the program has given back its own.
  void end() {
    program_.reset();
    for (const std::string& fault : fake.faults()) report_.problems.add("fault: " + fault);
    std::string left;
    for (const std::string& line : fake.live()) left += line + ", ";
    expect(fake.live() == kept() || (lost_context_ && fake.live() == kept_and_a_backend()), "left: " + left);
    expect(memory_descriptors() == 0, "descriptors of memory are left");
  }

 private:
  static const cuda::Driver* start() {
    ::setenv("PKCOMM_PLATFORM", "cuda", 1);
    ::setenv("PKCOMM_STAGING", "1M", 1);
    ::setenv("PKCOMM_HEAP_SIZE", "4M", 1);
    ::setenv("PKCOMM_LOG", "error", 1);  // warnings are what is being caused here
    return cuda::driver().value();
  }

  Report& report_;
  const cuda::Driver* const driver_;
  std::optional<Program> program_;
  bool lost_context_ = false;
};

/// A child that runs `body`.
class Trial {
 public:
  explicit Trial(const std::function<void(Child&)>& body)
      : process_([&] {
          Child child(*report_);
          body(child);
          return 0;
        }) {}

  /// What it has found wrong, when it has ended.
  std::string outcome() {
    const int code = process_.wait(kHangMs);
    std::string text = report_->problems.text();
    if (code == Process::kRunning) text += "it hangs\n";
    if (code > 0) text += "it ends with " + std::to_string(code) + '\n';
    return text;
  }
  std::string calls() const { return report_->calls.text(); }

 private:
  const Shared<Report> report_;
  Process process_;
};

struct Call {
  std::string name;
  std::size_t n;
};

/// The calls of one life; of each name at most so many, the first and the last among them.
std::vector<Call> calls_of_a_life(std::size_t most_of_a_name) {
  Trial trial([](Child& child) {
    auto before = child.fake.calls_by_name();
    child.live_well();
    for (const auto& [name, count] : child.fake.calls_by_name()) {
      if (count > before[name]) child.tell_call(name, count - before[name]);
    }
    child.end();
  });
  REQUIRE(trial.outcome().empty());
  std::vector<Call> calls;
  std::istringstream lines(trial.calls());
  std::string name;
  std::size_t count = 0;
  while (lines >> name >> count) {
    const std::size_t chosen = std::min(count, most_of_a_name);
    for (std::size_t i = 0; i < chosen; ++i) {
      calls.push_back({name, chosen == 1 ? 1 : 1 + i * (count - 1) / (chosen - 1)});
    }
  }
  return calls;
}

void fail_calls(std::size_t most_of_a_name) {
  // Those in which a rank waits for one that has failed take their time, so some run side by side.
  constexpr std::size_t kAtOnce = 16;
  const std::vector<Call> calls = calls_of_a_life(most_of_a_name);
  CHECK(calls.size() > 100);
  for (std::size_t first = 0; first < calls.size(); first += kAtOnce) {
    const auto some = std::span(calls).subspan(first, std::min(kAtOnce, calls.size() - first));
    std::vector<std::unique_ptr<Trial>> trials;
    for (const auto& [name, n] : some) {
      trials.push_back(std::make_unique<Trial>([&](Child& child) {
        child.live_badly(name, n, n % 2 == 0 ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY);
        child.live_well();
        child.end();
      }));
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      const std::string wrong = trials[i]->outcome();
      INFO("call " << some[i].n << " of " << some[i].name << " fails: " << wrong);
      CHECK(wrong.empty());
    }
  }
}

}  // namespace

TEST_CASE("cuda communicator: its end leaves what is kept for the process and the callers' state",
          "[unit][cuda]") {
  Trial trial([](Child& child) {
    child.live_well();
    child.end();
    for (const auto& [name, count] : child.fake.lookups()) {
      child.expect(name.find("Multicast") == std::string::npos, name + " is looked up");
    }
    std::map<std::string, int> runs;
    for (const FakeLaunch& launch : child.fake.launches()) {
      const bool early = std::any_of(
          launch.attributes.begin(), launch.attributes.end(), [](const CUlaunchAttribute& attribute) {
            return attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                   attribute.value.programmaticStreamSerializationAllowed == 1;
          });
      child.expect(early, launch.kernel + " may not start early");
      ++runs[launch.kernel];
    }
    for (const char* const kernel :
         {"pkcomm_pairwise_few", "pkcomm_put", "pkcomm_signal", "pkcomm_wait_signal"}) {
      child.expect(runs[kernel] == 4,
                   std::string(kernel) + " runs " + std::to_string(runs[kernel]) + " times, not 2 a rank");
    }
    child.expect(child.fake.launches().size() == 22,  // 5 on each of 4 streams, and the group's two
                 std::to_string(child.fake.launches().size()) + " launches");
  });
  const std::string wrong = trial.outcome();
  INFO(wrong);
  CHECK(wrong.empty());
}

TEST_CASE("cuda communicator: a failing driver call is named, nothing hangs or leaks, the next one works",
          "[unit][cuda][slow]") {
  fail_calls(8);
}

TEST_CASE("cuda communicator: the same for every single driver call", "[.nightly][cuda]") {
  fail_calls(~std::size_t{0});
}
