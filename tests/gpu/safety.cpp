// Runs before anything else does on a GPU: the multicast switches of the machine are obeyed.
#include <cstdlib>

#include "gpu/gpu.hpp"

using namespace pkcomm::test;

TEST_CASE("multicast is off and says why", "[gpu][safety]") {
  for (const char* const name :
       {"NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS"}) {
    CAPTURE(name);
    REQUIRE(std::getenv(name) != nullptr);
  }
  run_world(gpu_ranks(), [](Rank& self) {
    pkcommCommProperties_t properties = {};
    properties.size = sizeof properties;
    self.ok(pkcommCommGetProperties(self.comm, &properties), "properties");
    self.expect(std::string(properties.platform) == "cuda",
                std::string("the platform is ") + properties.platform);
    self.expect(properties.multicast == 0, "multicast is on");
    const std::string reason = properties.multicast_reason;
    self.expect(!reason.empty(), "no reason is given");
    void *heap = nullptr, *multicast = nullptr;
    self.ok(pkcommHeapAlloc(self.comm, 4096, &heap), "heap");
    self.fails(pkcommHeapMulticastPointer(self.comm, heap, &multicast), pkcommUnsupported, reason,
               "multicast pointer");
    self.expect(multicast == nullptr, "a pointer was given");
  });
}
