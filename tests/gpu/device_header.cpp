// pkcomm/device.cuh in kernels that are not the library's.
#include <barrier>

#include "gpu/exchange.hpp"
#include "gpu/gpu.hpp"

using namespace pkcomm::test;

namespace {

bool view_of(Rank& self, pkcommDeviceView_t& view) {
  view = {};
  view.size = sizeof view;
  return self.ok(pkcommCommGetDeviceView(self.comm, &view), "device view") &&
         self.expect(view.rank == self.rank && view.nranks == self.nranks, "the view is another rank's");
}

}  // namespace

TEST_CASE("kernels of the user exchange data and signals with their peers", "[gpu][device_header]") {
  const int nranks = gpu_ranks();
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    constexpr int kInts = 5000, kRounds = 200;
    void* block = nullptr;
    pkcommDeviceView_t view;
    Visible<int> wrong{0};
    const bool ready = self.ok(pkcommHeapAlloc(self.comm, kInts * sizeof(int), &block), "heap") &&
                       view_of(self, view) && self.expect(load_exchange() == cudaSuccess, "loading");
    all_are_ready.arrive_and_wait();
    if (!ready) return;
    self.expect(launch_exchange(view, static_cast<int*>(block), kInts, kRounds, wrong.data(), self.stream) ==
                    cudaSuccess,
                "launch");
    self.synchronize("exchange");
    self.expect(wrong[0] == 0, std::to_string(wrong[0]) + " ints were wrong, or a wait was given up");
  });
}

TEST_CASE("a kernel of the user waits for a signal that a call has raised", "[gpu][device_header]") {
  const int nranks = gpu_ranks();
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    const int next = (self.rank + 1) % self.nranks, before = (self.rank + self.nranks - 1) % self.nranks;
    pkcommDeviceView_t view;
    Visible<int> come{-1};
    const bool ready = view_of(self, view) && self.expect(load_exchange() == cudaSuccess, "loading");
    all_are_ready.arrive_and_wait();
    if (!ready) return;
    self.ok(pkcommSignal(next, 3, self.comm, self.stream), "signal");
    self.expect(launch_wait(view, before, 3, come.data(), self.stream) == cudaSuccess, "launch");
    self.synchronize("wait");
    self.expect(come[0] == 1, "the wait was given up");
  });
}

TEST_CASE("a wait in a kernel of the user ends with the communicator", "[gpu][device_header]") {
  const int nranks = gpu_ranks();
  std::barrier all_are_ready(nranks);
  run_world(nranks, [&](Rank& self) {
    pkcommDeviceView_t view;
    Visible<int> come{-1};
    const bool ready = view_of(self, view) && self.expect(load_exchange() == cudaSuccess, "loading");
    all_are_ready.arrive_and_wait();
    if (!ready) return;
    self.expect(launch_wait(view, (self.rank + 1) % self.nranks, 5, come.data(), self.stream) == cudaSuccess,
                "launch");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    self.expect(come[0] == -1, "the wait is over");
    self.ok(pkcommCommAbort(std::exchange(self.comm, nullptr)), "abort");
    self.expect(cudaStreamSynchronize(self.stream) == cudaSuccess, "synchronize");
    self.expect(come[0] == 0, "the wait was not given up");
  });
}
