// Host streams.
#include "api/boundary.hpp"
#include "pkcomm/pkcomm.h"
#include "platform/platform.hpp"

using namespace pkcomm;

extern "C" pkcommResult_t pkcommStreamCreate(pkcommStream_t* stream) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(stream != nullptr, "stream is null"));
    PK_ASSIGN(Platform* const platform, Platform::get());
    PK_ASSIGN(*stream, platform->create_stream());
    return {};
  });
}

extern "C" pkcommResult_t pkcommStreamDestroy(pkcommStream_t stream) {
  return api::boundary([&]() -> Status {
    PK_ASSIGN(Platform* const platform, Platform::get());
    return platform->destroy_stream(stream);
  });
}

extern "C" pkcommResult_t pkcommStreamSynchronize(pkcommStream_t stream) {
  return api::boundary([&]() -> Status {
    PK_ASSIGN(Platform* const platform, Platform::get());
    return platform->synchronize_stream(stream);
  });
}

extern "C" pkcommResult_t pkcommStreamQuery(pkcommStream_t stream) {
  return api::boundary([&]() -> Status {
    PK_ASSIGN(Platform* const platform, Platform::get());
    return platform->query_stream(stream);
  });
}

extern "C" pkcommResult_t pkcommStreamEnqueue(pkcommStream_t stream, void (*function)(void*),
                                              void* argument) {
  return api::boundary([&]() -> Status {
    PK_TRY(api::require(function != nullptr, "function is null"));
    PK_ASSIGN(Platform* const platform, Platform::get());
    return platform->enqueue_function(stream, function, argument);
  });
}
