// The CUDA platform on a fake driver: devices, the life of shareable memory, streams and kernels, and that nothing leaks
// and nothing of the caller's changes whichever call fails. One file, since every case rests on the same driver, devices and
// count of what is kept.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/unique_fd.hpp"
#include "platform/cuda/cuda_platform.hpp"
#include "support/catch.hpp"
#include "support/fake_driver.hpp"

using namespace pkcomm;
using bootstrap::UniqueFd;
using cuda::CudaPlatform;
using test::contains_text;
using test::FakeDriver;
using test::FakeLaunch;
using test::FakeOptions;

namespace {

constexpr std::size_t kBytes = std::size_t{2} << 20;
constexpr std::array kBoth = {0, 1};

std::unique_ptr<CudaPlatform> make_platform() {
  const auto driver = cuda::driver();
  REQUIRE(driver.ok());
  auto platform = CudaPlatform::create(*driver.value());
  REQUIRE(platform.ok());
  return std::move(platform).value();
}

std::unique_ptr<CudaPlatform> make_platform_with_devices() {
  auto platform = make_platform();
  for (const int device : kBoth) REQUIRE(platform->open_device(device).ok());
  return platform;
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

/// The calling thread's context and capture mode, which no call of the library may change.
struct ThreadState {
  CUcontext context = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool operator==(const ThreadState&) const = default;

  static ThreadState now(const cuda::Driver& driver) {
    ThreadState state;
    REQUIRE(driver.cuCtxGetCurrent(&state.context) == CUDA_SUCCESS);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    REQUIRE(driver.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
    state.mode = mode;
    REQUIRE(driver.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
    return state;
  }
};

/// All that is done with memory, from the first look at the devices to the end of the reservation. `calls` receives how
/// many calls of the driver came before the giving back.
Status live(const FakeDriver& fake, const cuda::Driver& driver, std::size_t& calls) {
  const std::size_t calls_before = fake.calls();
  PK_ASSIGN(const std::unique_ptr<CudaPlatform> platform, CudaPlatform::create(driver));
  for (const int device : kBoth) PK_TRY(platform->open_device(device).status());
  PK_ASSIGN(const int descriptor, platform->create_memory(1, kBytes));
  const UniqueFd memory(descriptor);
  PK_ASSIGN(std::byte* const base, platform->reserve(2 * kBytes));
  const auto use = [&]() -> Status {
    PK_TRY(platform->clear(0, base, kBytes));
    const int sent = 42;
    int received = 0;
    PK_TRY(platform->write(1, base, &sent, sizeof sent));
    PK_TRY(platform->read(0, &received, base, sizeof received));
    return received == sent ? Status() : Status(pkcommInternalError, "read is not what was written");
  };
  Status status = platform->map(memory.get(), kBytes, base, kBoth);
  if (status.ok()) {
    status = use();
    calls = fake.calls() - calls_before;
    platform->unmap(base, kBytes);
  }
  platform->release(base, 2 * kBytes);
  return status;
}

}  // namespace

TEST_CASE("cuda platform: a device's facts", "[unit][cuda]") {
  const FakeDriver fake;
  const auto platform = make_platform();
  const auto facts = platform->open_device(1);
  REQUIRE(facts.ok());
  CHECK(facts.value().uuid == FakeDriver::uuid(1));
  CHECK(facts.value().name == "Fake GPU");
  CHECK(facts.value().arch == "sm_90");
  CHECK(facts.value().sms == 132);
  CHECK(facts.value().pci_bus_id == "0000:02:00.0");
  CHECK(facts.value().multicast_capable);
  CHECK(facts.value().driver_version == 13000);
  CHECK(platform->granularity() == kBytes);
}

TEST_CASE("cuda platform: a device that is not there, not open or not able is named", "[unit][cuda]") {
  SECTION("not there") {
    const FakeDriver fake({.devices = 4});
    const auto platform = make_platform();
    for (const int device : {-1, 4, 7}) {
      const auto facts = platform->open_device(device);
      REQUIRE_FALSE(facts.ok());
      CHECK(facts.status().code() == pkcommInvalidArgument);
      CHECK(facts.status().message() == "device is " + std::to_string(device) + "; allowed: 0..3");
    }
  }
  SECTION("not open") {
    const FakeDriver fake;
    const auto platform = make_platform();
    const auto memory = platform->create_memory(1, kBytes);
    REQUIRE_FALSE(memory.ok());
    CHECK(memory.status().message() == "device 1 is used before it is opened");
  }
  SECTION("not able") {
    const FakeDriver fake(
        {.attributes = {{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0}}});
    const auto platform = make_platform();
    const auto facts = platform->open_device(0);
    REQUIRE_FALSE(facts.ok());
    CHECK(facts.status().code() == pkcommUnsupported);
    CHECK_THAT(facts.status().message(), contains_text("device 0 has no memory as file descriptors"));
    CHECK(fake.live().empty());
  }
}

TEST_CASE("cuda platform: the current device is that of the caller's context, 0 where there is none",
          "[unit][cuda]") {
  const FakeDriver fake;
  const auto platform = make_platform_with_devices();
  CHECK(platform->current_device().value() == 0);
  REQUIRE(platform->driver().cuCtxSetCurrent(platform->opened(1).value()->context()) == CUDA_SUCCESS);
  CHECK(platform->current_device().value() == 1);
}

TEST_CASE("cuda platform: which devices can map each other's memory", "[unit][cuda]") {
  const FakeDriver fake({.devices = 3, .without_peer_access = {{0, 2}}});
  const auto platform = make_platform();
  const auto peer = [](int device) {
    DeviceFacts facts;
    facts.uuid = FakeDriver::uuid(device);
    facts.name = "Fake GPU";
    return facts;
  };
  CHECK(platform->check_peer(0, peer(0)).ok());
  CHECK(platform->check_peer(0, peer(1)).ok());
  CHECK(platform->check_peer(0, peer(9)).ok());  // another process's, not visible here
  const Status refused = platform->check_peer(0, peer(2));
  CHECK(refused.code() == pkcommUnsupported);
  CHECK_THAT(refused.message(), contains_text("device 0 cannot map the memory of device 2 (Fake GPU"));
}

TEST_CASE("cuda platform: memory is shared by its descriptor and outlives the handles", "[unit][cuda]") {
  const FakeDriver fake;
  const auto platform = make_platform_with_devices();
  const auto created = platform->create_memory(0, kBytes);
  REQUIRE(created.ok());
  UniqueFd memory(created.value());
  CHECK((fcntl(memory.get(), F_GETFD) & FD_CLOEXEC) != 0);

  const auto reserved = platform->reserve(2 * kBytes);
  REQUIRE(reserved.ok());
  std::byte* const base = reserved.value();
  CHECK(reinterpret_cast<std::uintptr_t>(base) % kBytes == 0);
  for (const std::size_t offset : {std::size_t{0}, kBytes}) {
    REQUIRE(platform->map(memory.get(), kBytes, base + offset, kBoth).ok());
  }
  memory.reset();
  const auto live = fake.live();
  CHECK(std::none_of(live.begin(), live.end(),
                     [](const std::string& line) { return line.find("handles") != std::string::npos; }));

  // Two mappings of the same memory, one piece of a copy, several and a part of one.
  const std::size_t bytes = GENERATE(std::size_t{1}, std::size_t{65536}, std::size_t{200001});
  CAPTURE(bytes);
  std::vector<unsigned char> sent(bytes), received(bytes);
  for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<unsigned char>(i * 7 + 1);
  REQUIRE(platform->write(0, base + 4096, sent.data(), bytes).ok());
  REQUIRE(platform->read(1, received.data(), base + kBytes + 4096, bytes).ok());
  CHECK(received == sent);
  REQUIRE(platform->clear(1, base, kBytes).ok());
  REQUIRE(platform->read(0, received.data(), base + 4096, bytes).ok());
  CHECK(std::count(received.begin(), received.end(), 0) == static_cast<std::ptrdiff_t>(bytes));

  platform->unmap(base, kBytes);
  platform->unmap(base + kBytes, kBytes);
  platform->release(base, 2 * kBytes);
  CHECK(fake.faults().empty());
}

TEST_CASE("cuda platform: sizes are multiples of the granularity", "[unit][cuda]") {
  const FakeDriver fake;
  const auto platform = make_platform_with_devices();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4096}, kBytes - 1, kBytes + 1}) {
    CAPTURE(bytes);
    const auto created = platform->create_memory(0, bytes);
    REQUIRE_FALSE(created.ok());
    CHECK(created.status().message() == "memory: granularity 2097152, size " + std::to_string(bytes));
    CHECK_FALSE(platform->reserve(bytes).ok());
  }
  CHECK(fake.faults().empty());  // it does not come to the driver
}

TEST_CASE("cuda platform: fabric handles are asked for where offered, and done without", "[unit][cuda]") {
  const bool works = GENERATE(false, true);
  CAPTURE(works);
  const FakeDriver fake({.fabric_offered = true, .fabric_works = works});
  const auto platform = make_platform_with_devices();
  const auto created = platform->create_memory(0, kBytes);
  REQUIRE(created.ok());
  const UniqueFd memory(created.value());
  CHECK(fake.faults().empty());
}

TEST_CASE("cuda platform: whichever call fails, it is named and nothing leaks", "[unit][cuda]") {
  const bool fabric = GENERATE(false, true);
  const std::ptrdiff_t descriptors = open_descriptors();
  std::size_t failed_calls = 0;
  for (std::size_t n = 1;; ++n) {
    FakeDriver fake({.fabric_offered = fabric, .fabric_works = fabric});
    const auto driver = cuda::driver();
    REQUIRE(driver.ok());
    const ThreadState before = ThreadState::now(*driver.value());
    fake.fail_call(n, CUDA_ERROR_OUT_OF_MEMORY);
    std::size_t calls_before_end = 0;
    const Status status = live(fake, *driver.value(), calls_before_end);
    const std::string failed = fake.failed_call();
    CAPTURE(n, failed, status.message());
    // What gives something back fails without consequence, but for the log; so does asking for fabric handles.
    static const std::vector<std::string> harmless = {"cuCtxPopCurrent", "cuThreadExchangeStreamCaptureMode",
                                                      "cuMemRelease", "cuMemCreate"};
    if (status.ok()) {
      CHECK((n > calls_before_end || std::count(harmless.begin(), harmless.end(), failed) == 1));
    } else {
      CHECK(status.code() == pkcommOutOfMemory);
      CHECK_THAT(status.message(), contains_text(failed + ": CUDA_ERROR_OUT_OF_MEMORY"));
    }
    fake.fail_call(0, CUDA_SUCCESS);
    CHECK(fake.live() == std::vector<std::string>());
    CHECK(fake.faults() == std::vector<std::string>());
    CHECK(ThreadState::now(*driver.value()) == before);
    CHECK(open_descriptors() == descriptors);
    if (failed.empty()) break;
    ++failed_calls;
  }
  CHECK(failed_calls > 60);
}

TEST_CASE("cuda platform: calls may be made during a capture and leave the caller's context",
          "[unit][cuda]") {
  FakeDriver fake;
  const auto platform = make_platform_with_devices();
  const cuda::Driver& driver = platform->driver();
  const auto stream = platform->create_stream();
  REQUIRE(stream.ok());
  const bool has_context = GENERATE(false, true);
  if (has_context) REQUIRE(driver.cuCtxSetCurrent(platform->opened(1).value()->context()) == CUDA_SUCCESS);
  const ThreadState before = ThreadState::now(driver);
  CHECK((before.context != nullptr) == has_context);
  fake.begin_capture(stream.value());

  REQUIRE(platform->open_device(0).ok());
  CHECK(ThreadState::now(driver) == before);
  const auto created = platform->create_memory(0, kBytes);
  REQUIRE(created.ok());
  const UniqueFd memory(created.value());
  CHECK(ThreadState::now(driver) == before);
  std::byte* const base = platform->reserve(kBytes).value();
  CHECK(ThreadState::now(driver) == before);
  REQUIRE(platform->map(memory.get(), kBytes, base, kBoth).ok());
  CHECK(ThreadState::now(driver) == before);
  REQUIRE(platform->clear(0, base, kBytes).ok());
  CHECK(ThreadState::now(driver) == before);
  int value = 5;
  REQUIRE(platform->write(0, base, &value, sizeof value).ok());
  CHECK(ThreadState::now(driver) == before);
  REQUIRE(platform->read(1, &value, base, sizeof value).ok());
  CHECK(value == 5);
  CHECK(ThreadState::now(driver) == before);
  const auto other = platform->create_stream();
  REQUIRE(other.ok());
  CHECK(ThreadState::now(driver) == before);
  CHECK(platform->query_stream(other.value()).ok());
  CHECK(ThreadState::now(driver) == before);
  CHECK(platform->synchronize_stream(other.value()).ok());
  CHECK(ThreadState::now(driver) == before);
  CHECK(platform->destroy_stream(other.value()).ok());
  CHECK(ThreadState::now(driver) == before);
  platform->unmap(base, kBytes);
  CHECK(ThreadState::now(driver) == before);
  platform->release(base, kBytes);
  CHECK(ThreadState::now(driver) == before);
  fake.end_capture();
  CHECK(fake.faults() == std::vector<std::string>());
}

TEST_CASE("cuda platform: threads open the same devices and use their memory at the same time",
          "[unit][cuda]") {
  constexpr int kThreads = 4;
  const char image[] = "code";
  const cuda::KernelImage images[] = {{"one", image, sizeof image}};
  const cuda::KernelName kernels[] = {{0, "first"}};
  const FakeDriver fake;
  {
    const auto platform = make_platform();
    const auto use = [&](int thread) -> Status {
      PK_ASSIGN(const cuda::Driver* const driver, cuda::driver());
      if (driver != &platform->driver()) return Status(pkcommInternalError, "another driver");
      for (const int device : kBoth) PK_TRY(platform->open_device(device).status());
      PK_ASSIGN(cuda::Device* const device, platform->opened(thread % 2));
      PK_TRY(device->modules(images, kernels).status());
      PK_ASSIGN(const int descriptor, platform->create_memory(thread % 2, kBytes));
      const UniqueFd memory(descriptor);
      PK_ASSIGN(std::byte* const base, platform->reserve(kBytes));
      Status status = platform->map(memory.get(), kBytes, base, kBoth);
      for (int i = 0; i < 20 && status.ok(); ++i) {
        const int sent = thread * 100 + i;
        int received = 0;
        status = platform->write(0, base, &sent, sizeof sent);
        if (status.ok()) status = platform->read(1, &received, base, sizeof received);
        if (status.ok() && received != sent) status = Status(pkcommInternalError, "another thread's bytes");
      }
      platform->unmap(base, kBytes);
      platform->release(base, kBytes);
      return status;
    };
    std::array<Status, kThreads> outcomes;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] { outcomes[static_cast<std::size_t>(thread)] = use(thread); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& outcome : outcomes) {
      CAPTURE(outcome.message());
      CHECK(outcome.ok());
    }
    CHECK(fake.live() ==
          std::vector<std::string>{"2 contexts", "2 pinned buffers", "2 streams", "2 modules"});
  }
  CHECK(fake.live() == std::vector<std::string>());
  CHECK(fake.faults() == std::vector<std::string>());
}

TEST_CASE("cuda platform: streams are the driver's", "[unit][cuda]") {
  FakeDriver fake;
  const auto platform = make_platform();
  const auto stream = platform->create_stream();
  REQUIRE(stream.ok());

  int runs = 0;
  REQUIRE(platform
              ->enqueue_function(
                  stream.value(), [](void* count) { ++*static_cast<int*>(count); }, &runs)
              .ok());
  REQUIRE(platform->synchronize_stream(stream.value()).ok());
  CHECK(runs == 1);

  CHECK(platform->query_stream(stream.value()).ok());
  CHECK(platform->query_stream(nullptr).ok());
  fake.set_busy(stream.value(), true);
  CHECK(platform->query_stream(stream.value()).code() == pkcommInProgress);
  CHECK(fake.faults().empty());

  CHECK(platform->destroy_stream(nullptr).code() == pkcommInvalidArgument);
  CHECK(platform->destroy_stream(stream.value()).ok());
  const Status stale = platform->synchronize_stream(stream.value());
  CHECK(stale.code() == pkcommInvalidArgument);
  CHECK_THAT(stale.message(), contains_text("cuStreamSynchronize: CUDA_ERROR_INVALID_HANDLE"));
}

TEST_CASE("cuda modules: kernels are loaded once a device, all of them before the first launch",
          "[unit][cuda]") {
  const char image[] = "code";
  const cuda::KernelImage images[] = {{"one", image, sizeof image}, {"two", image, sizeof image}};
  const cuda::KernelName kernels[] = {{0, "first"}, {1, "second"}, {1, "third"}};
  // cuFuncLoad came with CUDA 12.4.
  const int version = GENERATE(12020, 13000);
  CAPTURE(version);
  std::vector<std::string> ran;
  FakeOptions options{.driver_version = version};
  options.on_launch = [&](const FakeLaunch& launch, void**) { ran.push_back(launch.kernel); };
  const FakeDriver fake(options);
  {
    const auto platform = make_platform_with_devices();
    cuda::Device& device = *platform->opened(1).value();
    const auto modules = device.modules(images, kernels);
    REQUIRE(modules.ok());
    const std::size_t calls = fake.calls();
    CHECK(device.modules(images, kernels).value() == modules.value());
    CHECK(fake.calls() == calls);
    CHECK(platform->opened(0).value()->modules(images, kernels).value() != modules.value());

    const auto stream = platform->create_stream();  // on device 0
    REQUIRE(stream.ok());
    const auto scope = device.enter();
    REQUIRE(scope.ok());
    CUlaunchConfig config{};
    REQUIRE(modules.value()->functions().size() == 3);
    for (const CUfunction function : modules.value()->functions()) {
      CHECK(platform->driver().cuLaunchKernelEx(&config, function, nullptr, nullptr) == CUDA_SUCCESS);
    }
    CHECK(ran == std::vector<std::string>{"first", "second", "third"});
    CHECK(fake.launches().back().device == 1);
    CHECK(fake.faults().empty());
    config.hStream = stream.value();
    CHECK(platform->driver().cuLaunchKernelEx(&config, modules.value()->functions()[0], nullptr, nullptr) ==
          CUDA_ERROR_INVALID_HANDLE);
  }
  CHECK(fake.live() == std::vector<std::string>());
}

TEST_CASE("cuda modules: a kernel that is not there is named and nothing stays loaded", "[unit][cuda]") {
  const char image[] = "code";
  const cuda::KernelImage images[] = {{"one", image, sizeof image}};
  const FakeDriver fake({.kernels = {"first"}});
  const auto platform = make_platform_with_devices();
  cuda::Device& device = *platform->opened(0).value();
  const auto before = fake.live();
  SECTION("not in the image") {
    const cuda::KernelName kernels[] = {{0, "first"}, {0, "second"}};
    const auto modules = device.modules(images, kernels);
    REQUIRE_FALSE(modules.ok());
    CHECK_THAT(modules.status().message(), contains_text("cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"));
    CHECK_THAT(modules.status().message(), contains_text(": image one, kernel second"));
  }
  SECTION("in no image") {
    const cuda::KernelName kernels[] = {{1, "first"}};
    const auto modules = device.modules(images, kernels);
    REQUIRE_FALSE(modules.ok());
    CHECK(modules.status().message() == "kernel first is said to be in image 1 of 1");
  }
  CHECK(fake.live() == before);
  CHECK(fake.faults().empty());
}
