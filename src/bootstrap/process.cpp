// Identity drawn from the kernel; place from the running kernel and the network namespace.
#include "bootstrap/process.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.hpp"
#include "bootstrap/unique_fd.hpp"

namespace pkcomm::bootstrap {
namespace {

struct Identity {
  Nonce nonce = random_nonce();
};
PerProcess<Identity> identity;

}  // namespace

Nonce process_nonce() { return identity.get().nonce; }

std::uint64_t place_of_process() {
  struct {
    char boot[36] = {};
    std::uint64_t network = 0;
  } place;
  const UniqueFd boot_id(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  struct stat network = {};
  if (!boot_id || ::read(boot_id.get(), place.boot, sizeof(place.boot)) != sizeof(place.boot)) return 0;
  if (::stat("/proc/self/ns/net", &network) != 0) return 0;
  place.network = network.st_ino;
  static_assert(sizeof(place) == 48);
  const char* begin = reinterpret_cast<const char*>(&place);
  // The padding between the two is left out.
  return checksum(begin, sizeof(place.boot)) ^ checksum(&place.network, sizeof(place.network));
}

}  // namespace pkcomm::bootstrap
