// Order between streams: a task on another stream than the last one is preceded by a wait for that one, which runs its
// work if nobody else does.
#include "collectives/host/host_backend.hpp"

#include <map>
#include <thread>

#include "base/process.hpp"
#include "collectives/describe.hpp"
#include "platform/host/bell.hpp"
#include "platform/host/host_platform.hpp"

namespace pkcomm::host {

HostBackend::HostBackend(BackendOptions options)
    : keeps_(std::move(options.keeps)),
      device_(options.device),
      executor_(options.view,
                WaiterOptions{options.timeout_ms, options.spin_us, std::move(options.pids), &describe_call},
                options.host_seed) {}

Status HostBackend::check(pkcommStream_t stream) {
  if (last_ && stream == last_handle_ && stream != nullptr) return {};
  auto found = HostPlatform::instance().stream_of(stream, device_);
  return std::move(found).status();
}

Task HostBackend::task_of(Launch launch) {
  const std::shared_ptr<HostBackend> self = shared_from_this();
  if (auto* const work = std::get_if<CollectiveWork>(&launch.work)) {
    return Task([self, work = *work] { return self->executor_.run(work.op, work.algorithm, work.ctas); });
  }
  if (auto* const work = std::get_if<TransferWork>(&launch.work)) {
    return Task([self, work = std::move(*work)]() -> Status {
      return work.numbered ? self->executor_.run_all_to_all_v(work.op, work.transfers)
                           : self->executor_.run(work.transfers);
    });
  }
  if (auto* const work = std::get_if<PutWork>(&launch.work)) {
    return Task([self, work = *work] { return self->executor_.put(work); });
  }
  if (auto* const work = std::get_if<SignalWork>(&launch.work)) {
    return Task([self, work = *work] { return self->executor_.signal(work); });
  }
  const auto work = std::get<WaitSignalWork>(launch.work);
  return Task([self, work] { return self->executor_.wait_signal(work); });
}

void HostBackend::follow(const std::shared_ptr<Stream>& stream) {
  if (!last_ || last_ == stream || last_->done(last_ticket_)) return;
  stream->enqueue(Task([last = last_, ticket = last_ticket_]() -> Status {
    last->wait(ticket);
    return {};
  }));
}

void HostBackend::submit(const std::shared_ptr<Stream>& stream, Task task) {
  follow(stream);
  last_ticket_ = stream->enqueue(std::move(task));
  last_ = stream;
}

Status HostBackend::launch(Launch launch) {
  // The stream of the last launch is asked for again as a rule; a default stream is looked up, since NULL is no name.
  if (last_ && launch.stream == last_handle_ && launch.stream != nullptr) {
    const std::shared_ptr<Stream> stream = last_;
    submit(stream, task_of(std::move(launch)));
    return {};
  }
  const pkcommStream_t handle = launch.stream;
  PK_ASSIGN(const std::shared_ptr<Stream> stream, HostPlatform::instance().stream_of(handle, device_));
  submit(stream, task_of(std::move(launch)));
  last_handle_ = handle;
  return {};
}

Status HostBackend::launch_group(std::vector<Launch> group) {
  struct Chain {
    HostBackend* backend;
    std::vector<Task> tasks;
  };
  std::map<std::shared_ptr<Stream>, std::vector<Chain>> streams;
  for (Launch& launch : group) {
    auto* const backend = static_cast<HostBackend*>(launch.backend);
    PK_ASSIGN(const std::shared_ptr<Stream> stream,
              HostPlatform::instance().stream_of(launch.stream, backend->device_));
    backend->last_handle_ = launch.stream;
    std::vector<Chain>& chains = streams[stream];
    auto chain = chains.begin();
    while (chain != chains.end() && chain->backend != backend) ++chain;
    if (chain == chains.end()) chain = chains.insert(chain, Chain{backend, {}});
    chain->tasks.push_back(backend->task_of(std::move(launch)));
  }
  for (auto& [stream, chains] : streams) {
    if (chains.size() == 1) {
      for (Task& task : chains.front().tasks) chains.front().backend->submit(stream, std::move(task));
    } else {
      // Several ranks on one stream: their chains run side by side, as one task.
      for (Chain& chain : chains) chain.backend->follow(stream);
      auto shared = std::make_unique<std::vector<Chain>>(std::move(chains));
      std::vector<HostBackend*> backends;
      for (const Chain& chain : *shared) backends.push_back(chain.backend);
      const std::uint64_t ticket = stream->enqueue(Task([own = std::move(shared)]() -> Status {
        std::vector<Status> results(own->size());
        const auto run = [&](std::size_t i) {
          for (Task& task : (*own)[i].tasks) {
            if (Status status = task.run(); results[i].ok()) results[i] = std::move(status);
          }
        };
        std::vector<std::thread> others;
        for (std::size_t i = 1; i < own->size(); ++i) {
          auto thread = start_thread("pkcomm-rank", [&run, i] { run(i); });
          if (thread.ok()) {
            others.push_back(std::move(thread).value());
          } else {
            results[i] = thread.status();
            (*own)[i].backend->abort();  // or its peers would wait for it
          }
        }
        run(0);
        for (std::thread& thread : others) thread.join();
        for (Status& status : results) {
          if (!status.ok()) return std::move(status);
        }
        return {};
      }));
      for (HostBackend* const backend : backends) {
        backend->last_ = stream;
        backend->last_ticket_ = ticket;
      }
    }
  }
  // One thread cannot drive several streams that wait for each other.
  if (streams.size() > 1) {
    for (const auto& [stream, chains] : streams) stream->start_worker();
  }
  return {};
}

void HostBackend::finish() {
  if (last_) last_->wait(last_ticket_);
}

void HostBackend::rank_died(int rank) {
  ControlBlock* const own = executor_.waiter().view().control(executor_.waiter().view().rank);
  store_if_zero(&own->poison,
                static_cast<std::uint64_t>(pkcommRemoteError) << 32 | static_cast<std::uint32_t>(rank + 1));
  ring_bell(own);
}

void HostBackend::abort() { executor_.waiter().abort(); }

void HostBackend::leave() {
  const View& view = executor_.waiter().view();
  // Release: whatever this rank published is seen by who sees that it has left.
  store_release(&view.control(view.rank)->left, std::uint64_t{1});
  for (int rank = 0; rank < view.nranks; ++rank) {
    if (rank != view.rank) wake_sleepers(view.control(rank));
  }
  last_.reset();
}

}  // namespace pkcomm::host
