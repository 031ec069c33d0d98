// What differs between measuring on the host and on a GPU, as the tool sees it: where memory lies and how
// bytes get there, the stream, the clock, graphs. Two stand behind it, device_host.cpp and device_cuda.cpp;
// nothing else in the tool knows which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkcomm/pkcomm.h"
#include "result.hpp"

namespace pkcomm::perf {

/// How long some work took on one rank.
struct Elapsed {
  double seconds = 0;       // of running it, from the moment when all ranks were ready
  double host_seconds = 0;  // of enqueueing it
};

/// One iteration of a series on one rank. Ends of the same iteration may be compared between ranks.
struct Iteration {
  std::int64_t duration_ns = 0;
  std::int64_t end_ns = 0;
};

/// Work that was captured once and is enqueued as a whole.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual Outcome launch() = 0;
};

/// One rank's device, with the one stream on which it works. Used by the rank's thread alone.
///
/// Ranks may share a GPU, and what makes or ends something there may wait for all that runs on it, which may
/// wait for this rank. So these come while no rank has work in flight: making and ending a device, allocate(),
/// release(), prepare_sampling(), the first chill(), capture() and a graph's end.
class Device {
 public:
  /// Enqueues something on the stream.
  using Step = std::function<Outcome()>;
  /// Gives, or looks at, bytes `at` to `at + bytes` of a stretch; both are multiples of 8 except at its end.
  using Produce = std::function<void(std::byte* out, std::size_t at, std::size_t bytes)>;
  using Inspect = std::function<void(const std::byte* data, std::size_t at, std::size_t bytes)>;

  virtual ~Device() = default;
  virtual std::string_view platform() const = 0;  // "host" or "cuda"
  virtual int index() const = 0;                  // PKCOMM_UNDEFINED: the library numbers it
  virtual std::string name() const = 0;
  virtual std::string bus_id() const = 0;

  virtual pkcommStream_t stream() const = 0;
  /// Waits for all work on the stream.
  virtual Outcome synchronize() = 0;

  /// Ordinary memory, aligned to a page.
  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) = 0;
  // The three that follow touch any memory of this device, windows included, while no work uses it.
  virtual Outcome fill(std::byte* at, int byte, std::size_t bytes) = 0;
  virtual Outcome write(std::byte* at, std::size_t bytes, const Produce& produce) = 0;
  virtual Outcome read(const std::byte* at, std::size_t bytes, const Inspect& inspect) = 0;

  /// Calls that must have run before the same ones are timed or captured.
  virtual int least_warmup() const = 0;
  /// The most small operations that one `work` of time() may enqueue before it calls run_ahead().
  virtual int most_operations() const = 0;
  /// Times `work` behind `align`, which brings the ranks together on the stream.
  virtual Result<Elapsed> time(const Step& align, const Step& work) = 0;
  /// Within `work`: lets the stream run from now on, for operations that outlast their launches.
  virtual void run_ahead() = 0;
  /// Makes what sample() needs for `most` iterations in one go, unless it is there.
  virtual Outcome prepare_sampling(int most) = 0;
  /// Times `iterations` single iterations of `work`, at most `batch` in one go. `wait` follows each, untimed;
  /// it may be empty.
  virtual Result<std::vector<Iteration>> sample(int iterations, int batch, const Step& align,
                                                const Step& work, const Step& wait) = 0;

  virtual bool has_graphs() const = 0;
  virtual Result<std::unique_ptr<Graph>> capture(const Step& work) = 0;
  /// Enqueues what drives all data out of the caches.
  virtual Outcome chill() = 0;
};

Result<std::unique_ptr<Device>> make_host_device(bool null_stream);
/// How many GPUs this process can use. Touches the driver: for ranks alone, never before a fork.
int cuda_devices();
/// For rank `rank` of the run: device rank modulo the number of devices.
Result<std::unique_ptr<Device>> make_cuda_device(int rank, bool null_stream);

/// The device on which `rank` works. `platform` is auto, host or cuda; auto is a GPU wherever there is one,
/// unless PKCOMM_PLATFORM says otherwise: as the library chooses.
Result<std::unique_ptr<Device>> open_device(const std::string& platform, int rank, bool null_stream);

/// Whether this program knows GPUs and the machine shows some. Touches no driver: safe before a fork.
bool gpus_in_sight();

}  // namespace pkcomm::perf
