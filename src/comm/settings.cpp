// Where options come from, and the words for options that differ between ranks.
#include "comm/settings.hpp"

#include <algorithm>
#include <cstring>

#include "base/environment.hpp"
#include "base/text.hpp"
#include "platform/platform.hpp"
#include "protocol/layout.hpp"

namespace pkcomm {
namespace {

using environment::Var;

// Kernels that wait for each other must all fit on the device. A CTA may fill an SM's registers, so this many leave room
// for eight communicators on the 132 SMs of an H200.
constexpr int kMostCtasOnGpu = 16;

Status out_of_range(const char* option, std::int64_t value, const char* allowed) {
  return Status(pkcommInvalidArgument,
                std::string("config.") + option + " is " + std::to_string(value) + "; allowed: " + allowed);
}

/// The caller's structure as this version knows it: fields that the caller does not have keep their defaults.
Result<pkcommConfig_t> complete(const pkcommConfig_t* config) {
  pkcommConfig_t whole = PKCOMM_CONFIG_INITIALIZER;
  if (config == nullptr) return whole;
  if (config->size < sizeof(std::size_t) + sizeof(int) || config->size > 4096) {
    return Status(pkcommInvalidArgument, "config.size is " + std::to_string(config->size) +
                                             "; start from PKCOMM_CONFIG_INITIALIZER");
  }
  std::memcpy(&whole, config, std::min(config->size, sizeof whole));
  return whole;
}

}  // namespace

Result<Settings> Settings::resolve(const pkcommConfig_t* config) {
  PK_ASSIGN(const pkcommConfig_t given, complete(config));
  Settings settings;
  if (given.blocking != PKCOMM_UNDEFINED) {
    if (given.blocking != 0 && given.blocking != 1) return out_of_range("blocking", given.blocking, "0, 1");
    settings.blocking = given.blocking == 1;
  }
  // The environment is above the configuration here, as NCCL has it: it is how an operator bounds a program.
  const auto ctas = [](int value, std::optional<std::int64_t> variable, int otherwise) {
    return variable ? static_cast<int>(*variable) : value != PKCOMM_UNDEFINED ? value : otherwise;
  };
  settings.min_ctas = ctas(given.min_ctas, environment::get_if_set<Var::kMinCtas>(), 1);
  PK_ASSIGN(Platform* const platform, Platform::get());
  const bool on_gpu = platform->kind() == PlatformKind::kCuda;
  settings.max_ctas = ctas(given.max_ctas, environment::get_if_set<Var::kMaxCtas>(),
                           std::max(on_gpu ? kMostCtasOnGpu : kMaxCtas, settings.min_ctas));
  if (settings.min_ctas < 1 || settings.min_ctas > kMaxCtas)
    return out_of_range("min_ctas", settings.min_ctas, "1..64");
  if (settings.max_ctas < settings.min_ctas || settings.max_ctas > kMaxCtas) {
    return out_of_range("max_ctas", settings.max_ctas, "min_ctas..64");
  }
  if (given.device != PKCOMM_UNDEFINED) {
    if (given.device < 0) return out_of_range("device", given.device, "0 and up");
    settings.device = given.device;
  } else {
    PK_ASSIGN(const int current, platform->current_device());
    if (current >= 0) settings.device = current;
  }
  if (given.name != nullptr) settings.name = given.name;
  settings.timeout_ms = given.timeout_ms >= 0 ? given.timeout_ms : environment::get<Var::kTimeout>().count();
  settings.init_timeout_ms =
      given.init_timeout_ms >= 0 ? given.init_timeout_ms : environment::get<Var::kInitTimeout>().count();
  settings.staging_bytes = environment::get<Var::kStaging>();
  settings.heap_limit = environment::get<Var::kHeapSize>();
  settings.spin_us = environment::get_if_set<Var::kSpinUs>();
  settings.host_seed = environment::get_if_set<Var::kHostSeed>();
  return settings;
}

std::string describe_difference(std::span<const std::byte> one, std::span<const std::byte> other) {
  Agreement a{}, b{};
  if (one.size() != sizeof a || other.size() != sizeof b) return "they are of different versions of pkcomm";
  std::memcpy(&a, one.data(), sizeof a);
  std::memcpy(&b, other.data(), sizeof b);
  const auto differ = [](const char* what, const std::string& x, const std::string& y) {
    return std::string(what) + " is " + x + " and " + y;
  };
  if (a.version != b.version)
    return differ("the version", std::to_string(a.version), std::to_string(b.version));
  if (a.nranks != b.nranks) return differ("nranks", std::to_string(a.nranks), std::to_string(b.nranks));
  if (a.platform != b.platform) return "PKCOMM_PLATFORM chooses different platforms";
  if (a.staging_bytes != b.staging_bytes) {
    return differ("PKCOMM_STAGING", format_bytes(a.staging_bytes), format_bytes(b.staging_bytes));
  }
  if (a.heap_limit != b.heap_limit) {
    return differ("PKCOMM_HEAP_SIZE", format_bytes(a.heap_limit), format_bytes(b.heap_limit));
  }
  if (a.min_ctas != b.min_ctas)
    return differ("min_ctas", std::to_string(a.min_ctas), std::to_string(b.min_ctas));
  if (a.max_ctas != b.max_ctas)
    return differ("max_ctas", std::to_string(a.max_ctas), std::to_string(b.max_ctas));
  return "PKCOMM_ALGORITHM, PKCOMM_MECHANISM, PKCOMM_CHUNK or the tuning table differ";
}

}  // namespace pkcomm
