// The fake driver's streams, events, modules and launches.
#include <cstdint>

#include "support/fake_driver_state.hpp"

namespace pkcomm::test::fake_cuda {
namespace {

/// The device on whose stream work is put: the stream's, or for a default stream the current context's.
int device_of(FakeState& state, CUstream stream) {
  const auto found = state.streams.find(stream);
  return found == state.streams.end() ? state.device() : found->second.device;
}

CUresult no_stream(FakeState& state, const char* call) {
  return state.fault(std::string(call) + " of no stream", CUDA_ERROR_INVALID_HANDLE);
}

CUresult no_event(FakeState& state, const char* call) {
  return state.fault(std::string(call) + " of no event", CUDA_ERROR_INVALID_HANDLE);
}

CUresult no_function(FakeState& state, const char* call) {
  return state.fault(std::string(call) + " of no function", CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace

// Streams.

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return call("cuStreamCreateWithPriority", kNeedsContext | kUnsafe, [&](FakeState& state) {
    if (flags != CU_STREAM_NON_BLOCKING) return state.fault("a stream that waits for the default stream");
    *stream = state.fresh<CUstream>();
    state.streams[*stream] = {.device = state.device()};
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy(CUstream stream) {
  return call("cuStreamDestroy", kNeedsContext | kReleases, [&](FakeState& state) {
    return state.streams.erase(stream) != 0 ? CUDA_SUCCESS : no_stream(state, "cuStreamDestroy");
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return call("cuStreamSynchronize", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuStreamSynchronize");
    if (state.is_captured(stream)) {
      return state.fault("cuStreamSynchronize of a captured stream", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return call("cuStreamQuery", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuStreamQuery");
    const auto found = state.streams.find(stream);
    return found != state.streams.end() && found->second.busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return call("cuStreamIsCapturing", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuStreamIsCapturing");
    *status = state.is_captured(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                CUgraph* graph, const CUgraphNode** dependencies, std::size_t* count) {
  return call("cuStreamGetCaptureInfo", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuStreamGetCaptureInfo");
    if (graph != nullptr || dependencies != nullptr || count != nullptr) {
      return state.fault("cuStreamGetCaptureInfo: this driver has no graphs");
    }
    *status = state.is_captured(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (id != nullptr && state.is_captured(stream)) *id = 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return call("cuStreamGetId", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuStreamGetId");
    *id = reinterpret_cast<std::uintptr_t>(stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return call("cuStreamGetCtx", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuStreamGetCtx");
    for (const auto& [live, device] : state.contexts) {
      if (device == device_of(state, stream)) *context = live;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return call("cuStreamWaitEvent", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuStreamWaitEvent");
    return state.events.contains(event) ? CUDA_SUCCESS : no_event(state, "cuStreamWaitEvent");
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  const unsigned traits =
      *mode == CU_STREAM_CAPTURE_MODE_RELAXED ? kPlain : kReleases;  // puts the caller's back
  return call("cuThreadExchangeStreamCaptureMode", traits, [&](FakeState& state) {
    std::swap(state.thread().mode, *mode);
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  return call("cuLaunchHostFunc", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuLaunchHostFunc");
    if (!state.is_captured(stream)) state.afterwards = [=] { function(argument); };
    return CUDA_SUCCESS;
  });
}

// Events: all work is complete at once, and so are they.

CUresult cuEventCreate(CUevent* event, unsigned) {
  return call("cuEventCreate", kNeedsContext, [&](FakeState& state) {
    *event = state.fresh<CUevent>();
    state.events.insert(*event);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent event) {
  return call("cuEventDestroy", kNeedsContext | kReleases, [&](FakeState& state) {
    return state.events.erase(event) != 0 ? CUDA_SUCCESS : no_event(state, "cuEventDestroy");
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return call("cuEventRecord", kNeedsContext, [&](FakeState& state) {
    if (!state.is_stream(stream)) return no_stream(state, "cuEventRecord");
    return state.events.contains(event) ? CUDA_SUCCESS : no_event(state, "cuEventRecord");
  });
}

CUresult cuEventQuery(CUevent event) {
  return call("cuEventQuery", kNeedsContext | kUnsafe, [&](FakeState& state) {
    return state.events.contains(event) ? CUDA_SUCCESS : no_event(state, "cuEventQuery");
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return call("cuEventSynchronize", kNeedsContext | kUnsafe, [&](FakeState& state) {
    return state.events.contains(event) ? CUDA_SUCCESS : no_event(state, "cuEventSynchronize");
  });
}

// Modules.

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return call("cuModuleLoadData", kNeedsContext | kUnsafe, [&](FakeState& state) {
    if (image == nullptr) return state.fault("cuModuleLoadData of null");
    *module = state.fresh<CUmodule>();
    state.modules[*module] = {.device = state.device()};
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return call("cuModuleUnload", kNeedsContext | kUnsafe | kReleases, [&](FakeState& state) {
    std::erase_if(state.functions, [&](const auto& entry) { return entry.second.module == module; });
    return state.modules.erase(module) != 0
               ? CUDA_SUCCESS
               : state.fault("cuModuleUnload of no module", CUDA_ERROR_INVALID_HANDLE);
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return call("cuModuleGetFunction", kNeedsContext, [&](FakeState& state) {
    if (!state.modules.contains(module)) {
      return state.fault("cuModuleGetFunction of no module", CUDA_ERROR_INVALID_HANDLE);
    }
    if (!state.options.kernels.empty() && !state.options.kernels.contains(name)) return CUDA_ERROR_NOT_FOUND;
    *function = state.fresh<CUfunction>();
    state.functions[*function] = {.module = module, .name = name, .loaded = false, .attributes = {}};
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncLoad(CUfunction function) {
  return call("cuFuncLoad", kNeedsContext | kUnsafe, [&](FakeState& state) {
    const auto found = state.functions.find(function);
    if (found == state.functions.end()) return no_function(state, "cuFuncLoad");
    found->second.loaded = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
  return call("cuFuncGetAttribute", kNeedsContext | kUnsafe, [&](FakeState& state) {
    const auto found = state.functions.find(function);
    if (found == state.functions.end()) return no_function(state, "cuFuncGetAttribute");
    found->second.loaded = true;
    *value = found->second.attributes[which];
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  return call("cuFuncSetAttribute", kNeedsContext, [&](FakeState& state) {
    const auto found = state.functions.find(function);
    if (found == state.functions.end()) return no_function(state, "cuFuncSetAttribute");
    found->second.attributes[which] = value;
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return call("cuLaunchKernelEx", kNeedsContext, [&](FakeState& state) {
    const auto found = state.functions.find(function);
    if (found == state.functions.end()) return no_function(state, "cuLaunchKernelEx");
    if (!state.is_stream(config->hStream)) return no_stream(state, "cuLaunchKernelEx");
    if (extra != nullptr) return state.fault("cuLaunchKernelEx: this driver wants kernelParams");
    if (!found->second.loaded) return state.fault("cuLaunchKernelEx of a kernel that is yet to be loaded");
    const int device = device_of(state, config->hStream);
    if (device != state.modules.at(found->second.module).device) {
      return state.fault("cuLaunchKernelEx on another device's stream", CUDA_ERROR_INVALID_HANDLE);
    }
    FakeLaunch launch{.kernel = found->second.name,
                      .device = device,
                      .config = *config,
                      .attributes = {config->attrs, config->attrs + config->numAttrs},
                      .captured = state.is_captured(config->hStream)};
    launch.config.attrs = nullptr;
    state.launches.push_back(launch);
    if (!launch.captured && state.options.on_launch) {
      state.afterwards = [&state, launch, parameters] { state.options.on_launch(launch, parameters); };
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace pkcomm::test::fake_cuda
