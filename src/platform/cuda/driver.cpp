// Loading of the driver, and what its results mean.
#include "platform/cuda/driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "base/process.hpp"

namespace pkcomm::cuda {
namespace {

/// One answer of driver(), for one process. Answers are never deleted: somebody may still use the table of one that a
/// test or a fork has made void.
struct Answer {
  Driver driver;
  Status status;
  std::uint64_t generation = 0;  // of the process; 0 is no process's
  bool cuda_started = false;     // by this process or by one that it was forked from
  const Answer* previous = nullptr;
};

std::atomic<Answer*> current{nullptr};
Resolver testing_resolver = nullptr;

std::string describe(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName != nullptr) driver.cuGetErrorName(result, &name);
  if (driver.cuGetErrorString != nullptr) driver.cuGetErrorString(result, &text);
  if (name == nullptr) return "CUDA error " + std::to_string(static_cast<int>(result));
  return text == nullptr ? std::string(name) : std::string(name) + " (" + text + ")";
}

pkcommResult_t code_of(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return pkcommOutOfMemory;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return pkcommUnsupported;
    default:
      return pkcommCudaError;
  }
}

std::string to_string(const Detail& detail) {
  if (detail.text != nullptr) return detail.text;
  if (detail.address == nullptr) return std::to_string(detail.number);
  char text[2 + 2 * sizeof(void*) + 1];
  std::snprintf(text, sizeof text, "0x%" PRIxPTR, reinterpret_cast<std::uintptr_t>(detail.address));
  return text;
}

Status forked(const std::string& reason) {
  return Status(
      pkcommInvalidUsage,
      reason +
          "this process was forked from one that had started CUDA, which CUDA does not allow; start "
          "it anew (exec; \"spawn\" in Python's multiprocessing)");
}

/// dlopen'ed and never closed: the driver has threads and exit handlers.
Status open_libcuda(Resolver& resolver) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return Status(pkcommUnsupported,
                  std::string("no CUDA driver: ") + (reason != nullptr ? reason : "libcuda.so.1"));
  }
  void* const symbol = dlsym(library, "cuGetProcAddress_v2");
  if (symbol == nullptr) {
    return Status(pkcommUnsupported,
                  "the CUDA driver is older than 12.0: libcuda.so.1 has no cuGetProcAddress_v2");
  }
  resolver = reinterpret_cast<Resolver>(symbol);
  return {};
}

enum class Need { kRequired, kOptional };

template <class Function>
Status resolve(Resolver resolver, const char* name, int version, Need need, Function& function) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult found{};
  // The legacy default stream for NULL, whatever the application was compiled with.
  const CUresult result = resolver(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
  if (result == CUDA_SUCCESS && address != nullptr) {
    function = reinterpret_cast<Function>(address);
  } else if (need == Need::kRequired) {
    return Status(pkcommUnsupported, "the CUDA driver has no " + std::string(name) + " of CUDA " +
                                         std::to_string(version / 1000) + "." +
                                         std::to_string(version % 1000 / 10));
  }
  return {};
}

Status fill(Resolver resolver, Driver& driver) {
#define PK_CUDA_RESOLVE(name, version, need) \
  PK_TRY(resolve(resolver, #name, version, Need::need, driver.name));
  PK_CUDA_DRIVER_SYMBOLS(PK_CUDA_RESOLVE)
#undef PK_CUDA_RESOLVE
  return {};
}

Status start(Driver& driver) {
  Resolver resolver = testing_resolver;
  if (resolver == nullptr) PK_TRY(open_libcuda(resolver));
  PK_TRY(fill(resolver, driver));
  const CUresult result = driver.cuInit(0);
  if (result == CUDA_ERROR_NOT_INITIALIZED) return forked("cuInit: " + describe(driver, result) + ": ");
  if (result != CUDA_SUCCESS) {
    Status status(pkcommUnsupported, "cuInit: " + describe(driver, result));
    // A driver that is there and does not work is news to its owner, even where the host platform takes over.
    log_once("cuInit", result == CUDA_ERROR_NO_DEVICE ? LogLevel::kInfo : LogLevel::kWarn, status.message());
    return status;
  }
  return check(driver.cuDriverGetVersion(&driver.version), "cuDriverGetVersion");
}

/// This process's answer, made if there is none. Two threads may both make it: starting is idempotent, and the first
/// answer holds.
const Answer& answer() {
  Answer* known = current.load(std::memory_order_acquire);
  const std::uint64_t generation = process_generation();
  while (known == nullptr || known->generation != generation) {
    auto fresh = std::make_unique<Answer>();
    fresh->generation = generation;
    fresh->previous = known;
    const bool inherited = known != nullptr && known->cuda_started;
    fresh->status = inherited ? forked("") : start(fresh->driver);
    fresh->cuda_started = inherited || fresh->status.ok();
    if (current.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel))
      return *fresh.release();
  }
  return *known;
}

}  // namespace

Result<const Driver*> driver() {
  const Answer& mine = answer();
  if (!mine.status.ok()) return mine.status;
  return &mine.driver;
}

Status failure(CUresult result, const char* call, std::initializer_list<Detail> details) {
  const Answer* const answer = current.load(std::memory_order_acquire);
  std::string text =
      std::string(call) + ": " + describe(answer != nullptr ? answer->driver : Driver{}, result);
  const char* separator = ": ";
  for (const Detail& detail : details) {
    text += separator;
    text += detail.name;
    text += " " + to_string(detail);
    separator = ", ";
  }
  return Status(code_of(result), std::move(text));
}

void set_resolver_for_testing(Resolver resolver) {
  testing_resolver = resolver;
  auto none = std::make_unique<Answer>();
  none->previous = current.load(std::memory_order_acquire);
  current.store(none.release(), std::memory_order_release);
}

}  // namespace pkcomm::cuda
