// Random bits, and the check on what is sent with them.
#include "bootstrap/nonce.hpp"

#include <sys/random.h>
#include <sys/types.h>

namespace pkcomm::bootstrap {

Nonce random_nonce() {
  Nonce nonce;
  auto* bytes = reinterpret_cast<char*>(nonce.words.data());
  for (std::size_t got = 0; got < sizeof(nonce.words);) {
    const ssize_t more = getrandom(bytes + got, sizeof(nonce.words) - got, 0);
    if (more > 0) got += static_cast<std::size_t>(more);
  }
  return nonce;
}

std::uint64_t checksum(const void* data, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: offset basis and prime of its 64-bit form
  for (std::size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
  }
  return hash;
}

}  // namespace pkcomm::bootstrap
