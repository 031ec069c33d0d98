// What the cases of this suite share: how many ranks, CUDA calls that must succeed, and graphs.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <string>

#include "support/memory.hpp"

namespace pkcomm::test {

/// One rank a GPU, two on a single one. The suite knows CUDA alone: PKCOMM_TEST_PLATFORM=cuda.
inline int gpu_ranks() {
  REQUIRE(on_cuda());
  return std::max(2, device_count());
}

inline bool succeeds(Rank& self, cudaError_t error, const std::string& call) {
  return self.expect(error == cudaSuccess, call + ": " + cudaGetErrorString(error));
}

/// An event without timing, for order between streams.
class Event {
 public:
  explicit Event(Rank& self) : self_(self) {
    succeeds(self_, cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  /// What `later` is given from now on runs behind what `earlier` has.
  void order(cudaStream_t earlier, cudaStream_t later) {
    succeeds(self_, cudaEventRecord(event_, earlier), "cudaEventRecord");
    succeeds(self_, cudaStreamWaitEvent(later, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  Rank& self_;
  cudaEvent_t event_ = nullptr;
};

/// What `body` enqueues on the stream, to be replayed. It is on the device when the constructor returns: making a graph
/// may wait for kernels that run, so ranks meet between making and launching.
class Graph {
 public:
  Graph(Rank& self, cudaStream_t stream, const std::function<void()>& body) : self_(self), stream_(stream) {
    // Of this thread alone: the other ranks' threads allocate what they like meanwhile.
    if (!succeeds(self_, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                  "begin of capture"))
      return;
    body();
    cudaGraph_t graph = nullptr;
    if (!succeeds(self_, cudaStreamEndCapture(stream_, &graph), "end of capture")) return;
    succeeds(self_, cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
    if (executable_ == nullptr) return;
    succeeds(self_, cudaGraphUpload(executable_, stream_), "cudaGraphUpload");
    succeeds(self_, cudaStreamSynchronize(stream_), "upload of a graph");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }

  bool launch() {
    return executable_ != nullptr && succeeds(self_, cudaGraphLaunch(executable_, stream_), "launch");
  }

 private:
  Rank& self_;
  const cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace pkcomm::test
