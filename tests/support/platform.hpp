// Which platform a suite runs on, and with which devices. PKCOMM_TEST_PLATFORM=host|cuda says so (host where it is unset)
// and decides pkcomm's own choice with it, before main. CUDA is not touched before a rank takes its device: a process
// that has touched it cannot fork ranks any more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pkcomm::test {

bool on_cuda();

/// Ends the process with the text: the suite cannot go on, and a rank's thread cannot fail a test.
[[noreturn]] void give_up(const char* text);

/// PKCOMM_TEST_<name>, a number, as it was before main; pkcomm would call such a variable misspelt.
std::optional<std::uint64_t> test_setting(const std::string& name);

/// GPUs of this machine; any number on the host platform.
int device_count();
/// The device of a rank: ranks beyond the number of devices share them.
inline int device_of(int rank) { return rank % device_count(); }
/// The devices of ranks 0 to nranks-1, as pkcommCommInitAll takes them.
std::vector<int> devices_of(int nranks);

/// Makes `device` current for the calling thread, and what copies and buffers need there before anything can wait on it.
/// Every rank's thread calls it first.
void use_device(int device);
/// Bytes of device memory that are free on the current device; 0 on the host platform.
std::size_t free_device_bytes();

/// For cases that would have no meaning on CUDA: false there, after saying why.
bool only_on_host(const char* why);
/// For ranks that are processes, or that use their device's default stream: work of two processes takes turns on a
/// device, and all ranks of a device have one default stream. False, after saying so, where `nranks` are too many.
bool a_device_each(int nranks);

/// For many ranks: kernels of all of them must run at the same time. False, after saying so, where a device would have more
/// ranks than that.
bool fits_devices(int nranks);

/// Whether PKCOMM_ALGORITHM can force `algorithm` on this platform; a rule, as "^multimem_emulated", always can.
bool can_force(const std::string& algorithm);
/// All that can be forced, and first the empty name, which leaves the choice to the dispatcher.
std::vector<std::string> algorithms();

}  // namespace pkcomm::test
