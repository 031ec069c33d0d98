// PKCOMM_TEST_* is read, and PKCOMM_PLATFORM written, by the initialisation of `settings`.
#include "support/platform.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "support/catch.hpp"
#include "support/cuda.hpp"
#include "support/cuda_use.hpp"
#include "support/device_memory.hpp"

namespace pkcomm::test {

void give_up(const char* text) {
  std::fprintf(stderr, "the tests end: %s\n", text);
  std::abort();
}

namespace {

/// What host ranks may be numbered up to as devices.
constexpr int kHostDevices = 1024;

struct Settings {
  bool cuda = false;
  std::map<std::string, std::uint64_t> numbers;

  Settings() {
    const std::string platform = take("PLATFORM").value_or("host");
    if (platform != "host" && platform != "cuda") give_up("PKCOMM_TEST_PLATFORM is neither host nor cuda");
    if (platform == "cuda" && !kHaveCuda) give_up("PKCOMM_TEST_PLATFORM=cuda: this build is without CUDA");
    cuda = platform == "cuda";
    ::setenv("PKCOMM_PLATFORM", platform.c_str(), 1);
    for (const char* const name : {"OPERATIONS", "SEED"}) {
      if (const auto text = take(name)) numbers[name] = std::strtoull(text->c_str(), nullptr, 0);
    }
    // A test that wants multicast asks for it and is refused: it may harm others on a shared machine.
    if (cuda) {
      for (const char* const name :
           {"NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST"})
        ::setenv(name, std::strcmp(name, "NCCL_NVLS_ENABLE") == 0 ? "0" : "1", 1);
    }
  }

 private:
  static std::optional<std::string> take(const std::string& name) {
    const std::string variable = "PKCOMM_TEST_" + name;
    const char* const value = std::getenv(variable.c_str());
    if (value == nullptr) return std::nullopt;
    std::string text = value;
    ::unsetenv(variable.c_str());
    return text;
  }
};
const Settings settings;

}  // namespace

bool on_cuda() { return settings.cuda; }

std::optional<std::uint64_t> test_setting(const std::string& name) {
  const auto found = settings.numbers.find(name);
  return found == settings.numbers.end() ? std::nullopt : std::optional(found->second);
}

int device_count() {
  static const int count = on_cuda() ? cuda_device_count() : kHostDevices;
  return count;
}

std::vector<int> devices_of(int nranks) {
  std::vector<int> devices;
  for (int rank = 0; rank < nranks; ++rank) devices.push_back(device_of(rank));
  return devices;
}

void use_device(int device) {
  if (!on_cuda()) return;
  mark_cuda_in_use();
  cuda_set_device(device);
  prepare_memory(device);
}

std::size_t free_device_bytes() { return on_cuda() ? cuda_free_bytes() : 0; }

bool only_on_host(const char* why) {
  if (on_cuda()) WARN("skipped on CUDA: " << why);
  return !on_cuda();
}

bool a_device_each(int nranks) {
  const bool enough = device_count() >= nranks;
  if (!enough) WARN("skipped: " << nranks << " devices are needed, one a rank, here are " << device_count());
  return enough;
}

bool fits_devices(int nranks) {
  // A device starts kernels from 32 queues (CUDA_DEVICE_MAX_CONNECTIONS), and copies need some.
  constexpr int kMost = 20;
  const int each = (nranks + device_count() - 1) / device_count();
  if (each > kMost)
    WARN("skipped: " << nranks << " ranks are " << each << " a device, " << kMost << " can run at once");
  return each <= kMost;
}

bool can_force(const std::string& algorithm) {
  // What CUDA lacks: no kernels have been written for these.
  return !on_cuda() ||
         (algorithm != "direct_tma" && algorithm != "copy_engine" && algorithm != "multimem_emulated");
}

std::vector<std::string> algorithms() {
  std::vector<std::string> names = {""};
  for (const char* const name :
       {"one_shot_ll", "two_shot_ll", "direct_ldst", "direct_tma", "copy_engine", "multimem_emulated"}) {
    if (can_force(name)) names.emplace_back(name);
  }
  return names;
}

}  // namespace pkcomm::test
