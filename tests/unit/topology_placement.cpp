// This machine, whatever it is: found without touching the caller, and placement that does no harm.
#include <sched.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "topology/placement.hpp"
#include "topology/topology.hpp"

namespace pkcomm::topology {
namespace {

cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
  return set;
}

TEST_CASE("this machine is found once, with cores and at least one NUMA node", "[unit][topology]") {
  const Topology& here = detect_host();
  CHECK(&here == &detect_host());
  CHECK(here.platform == PlatformKind::kHost);
  CHECK(here.cores >= 1);
  CHECK(here.numa_nodes.size() >= 1);
  CHECK(here.gpus.empty());
  CHECK_FALSE(here.multicast());
}

TEST_CASE("finding out about the machine leaves the caller's affinity alone", "[unit][topology]") {
  const cpu_set_t before = affinity();
  detect_host();
  CHECK(numa_nodes() >= 1);
  CHECK(numa_node_of_this_thread() >= 0);
  CHECK(numa_node_of_this_thread() < numa_nodes());
  const cpu_set_t after = affinity();
  CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("memory and workers are bound to nodes that exist and to no others", "[unit][topology]") {
  constexpr std::size_t kBytes = 1 << 16;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kBytes), &std::free);
  REQUIRE(memory != nullptr);
  for (int node = 0; node < numa_nodes(); ++node) CHECK(bind_memory_near(memory.get(), kBytes, node).ok());
  for (const int node : {-1, numa_nodes()}) {
    const Status status = bind_memory_near(memory.get(), kBytes, node);
    CHECK(status.code() == pkcommInvalidArgument);
    CHECK_THAT(status.message(), test::contains_text("NUMA node " + std::to_string(node)));
    CHECK(bind_worker_near(node).code() == pkcommInvalidArgument);
  }
}

TEST_CASE("a worker stays within what its process was left", "[unit][topology]") {
  const cpu_set_t before = affinity();
  cpu_set_t within;
  CPU_ZERO(&within);
  Status status;
  std::thread worker([&] {
    status = bind_worker_near(numa_nodes() - 1);
    sched_getaffinity(0, sizeof(within), &within);
  });
  worker.join();
  CHECK(status.ok());
  cpu_set_t both;
  CPU_AND(&both, &before, &within);
  CHECK(CPU_EQUAL(&both, &within));
  CHECK(CPU_COUNT(&within) >= 1);
}

}  // namespace
}  // namespace pkcomm::topology
