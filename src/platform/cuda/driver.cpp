// Loading of the driver, and what its results mean.
#include "platform/cuda/driver.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>

#include "base/log.hpp"

namespace pkcomm::cuda {
namespace {

/// One answer of driver(). Answers are never deleted: somebody may still use a table that a test or a fork replaced.
struct Answer {
  Driver driver;
  Status status;
  const Answer* predecessor = nullptr;  // keeps it reachable, for leak checkers
};

std::atomic<Answer*> current{nullptr};
const Answer* replaced = nullptr;  // written by a forked child with one thread, and by tests
bool parent_has_cuda = false;      // likewise
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
  if (parent_has_cuda) return forked("");
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

/// Forgets the answer; whether CUDA had been started.
bool forget_answer() {
  Answer* const answer = current.exchange(nullptr, std::memory_order_acq_rel);
  if (answer == nullptr) return false;
  answer->predecessor = replaced;
  replaced = answer;
  return answer->status.ok();
}

void after_fork_in_child() {
  if (forget_answer()) parent_has_cuda = true;
}

/// Two threads may both come here: starting is idempotent, and the first answer holds.
const Answer& first_answer() {
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) pthread_atfork(nullptr, nullptr, after_fork_in_child);
  auto fresh = std::make_unique<Answer>();
  fresh->status = start(fresh->driver);
  Answer* existing = nullptr;
  if (!current.compare_exchange_strong(existing, fresh.get(), std::memory_order_acq_rel)) return *existing;
  return *fresh.release();
}

}  // namespace

Result<const Driver*> driver() {
  const Answer* const known = current.load(std::memory_order_acquire);
  const Answer& answer = known != nullptr ? *known : first_answer();
  if (!answer.status.ok()) return answer.status;
  return &answer.driver;
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
  forget_answer();
  parent_has_cuda = false;
  testing_resolver = resolver;
}

}  // namespace pkcomm::cuda
