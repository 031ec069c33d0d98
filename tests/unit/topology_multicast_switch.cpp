// Which variables switch multicast off.
#include "support/catch.hpp"
#include "support/world.hpp"
#include "topology/multicast_switch.hpp"

using pkcomm::test::Environment;
using pkcomm::topology::multicast_switched_off;

TEST_CASE("each of the four variables switches multicast off, and is named", "[unit][topology]") {
  const Environment none({{"PKCOMM_MULTICAST", "auto"},
                          {"NCCL_NVLS_ENABLE", "1"},
                          {"TORCH_SYMM_MEM_DISABLE_MULTICAST", "0"},
                          {"NVSHMEM_DISABLE_NVLS", "0"}});
  CHECK(multicast_switched_off() == "");
  const auto [variable, value] = GENERATE(table<std::string, std::string>({
      {"PKCOMM_MULTICAST", "off"},
      {"NCCL_NVLS_ENABLE", "0"},
      {"TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"},
      {"NVSHMEM_DISABLE_NVLS", "1"},
      {"NVSHMEM_DISABLE_NVLS", "true"},
      {"TORCH_SYMM_MEM_DISABLE_MULTICAST", "what?"},
      {"NCCL_NVLS_ENABLE", "00"},
  }));
  const Environment one(std::map<std::string, std::string>{{variable, value}});
  CHECK(multicast_switched_off() == variable + "=" + value);
}
