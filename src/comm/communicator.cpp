// Life of a communicator: start, state, end.
#include "comm/communicator.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "comm/machine.hpp"
#include "topology/placement.hpp"
#include "topology/topology.hpp"

namespace pkcomm {
namespace {

// A wait spins this long where every rank can have a core: longer than a peer's reduction of one round, shorter than a
// scheduler's slice. With more ranks than cores spinning only keeps the others from running.
constexpr std::int64_t kSpinUs = 50;

}  // namespace

Communicator::Communicator(int nranks, const pkcommUniqueId& id, int rank, Settings settings)
    : nranks_(nranks), id_(id), rank_(rank), settings_(std::move(settings)) {}

Communicator::~Communicator() {
  if (starter_.joinable()) {
    cancelled_.store(true);
    starter_.join();
  }
  if (backend_) {
    group_->remove(backend_.get());
    backend_->leave();
  }
  if (membership_) membership_->leave(rank_);
}

Status Communicator::start() {
  Status status = join();
  {
    const std::lock_guard lock(mutex_);
    start_status_ = status;
    if (!status.ok()) last_error_ = status.message();
  }
  state_.store(status.ok() ? State::kReady : State::kFailed, std::memory_order_release);
  return status;
}

Status Communicator::start_in_background() {
  PK_ASSIGN(starter_, start_thread("pkcomm-start", [this] { (void)start(); }));
  return {};
}

Status Communicator::join() {
  const auto deadline = bootstrap::Deadline::after_ms(settings_.init_timeout_ms);
  PK_ASSIGN(Platform* const platform, Platform::get());
  platform_ = platform->kind();
  PK_ASSIGN(const DeviceFacts facts, platform->open_device(device()));
  layout_ = Layout::make(nranks_, settings_.staging_bytes);
  PK_TRY(bind_dispatcher(platform_, facts));

  Agreement agreement{PKCOMM_VERSION,
                      static_cast<std::uint64_t>(nranks_),
                      static_cast<std::uint64_t>(platform_),
                      settings_.staging_bytes,
                      settings_.heap_limit,
                      static_cast<std::uint64_t>(settings_.min_ctas),
                      static_cast<std::uint64_t>(settings_.max_ctas),
                      dispatcher_->agreement_hash()};
  PK_ASSIGN(auto membership,
            bootstrap::Membership::join(id_, nranks_, rank_, std::as_bytes(std::span(&agreement, 1)),
                                        &describe_difference, deadline, &cancelled_));
  {
    const std::lock_guard lock(mutex_);
    membership_ = std::move(membership);
  }
  PK_TRY(map_memory(*platform, facts, deadline));

  const View view = this->view();
  BackendOptions options{view, device(), settings_.timeout_ms, 0, settings_.host_seed, {}, group_};
  options.spin_us = settings_.spin_us.value_or(nranks_ <= topology::detect_host().cores ? kSpinUs : 0);
  for (const auto& info : membership_->ranks()) options.pids.push_back(info.pid);
  PK_ASSIGN(auto backend, make_backend(platform_, std::move(options)));
  group_->add(backend.get());
  {
    const std::lock_guard lock(mutex_);
    backend_ = std::move(backend);
  }
  PK_TRY(prove_memory(*platform, deadline));

  if (log_enabled(LogLevel::kInfo)) {
    log(LogLevel::kInfo, "rank " + std::to_string(rank_) + " of " + std::to_string(nranks_) + " is ready, " +
                             std::to_string(membership_->processes()) + " processes" +
                             (settings_.name.empty() ? "" : ", communicator " + settings_.name));
  }
  return {};
}

Status Communicator::bind_dispatcher(PlatformKind platform, const DeviceFacts& facts) {
  const Topology machine = machine_of(platform, facts);
  dispatch::Capabilities capabilities = dispatch::capabilities_of(machine);
  if (environment::get<environment::Var::kMulticast>() == environment::MulticastChoice::kRequire) {
    return Status(pkcommUnsupported, "PKCOMM_MULTICAST=require: " + capabilities.multicast_reason);
  }
  capabilities.ll_capacity_bytes = layout_.ll_capacity;
  capabilities.slot_bytes = layout_.slot_bytes;
  capabilities.engine_bytes = layout_.engine_bytes;
  capabilities.algorithms = algorithms_of(platform);
  PK_ASSIGN(auto dispatcher,
            dispatch::Dispatcher::create(machine, capabilities, dispatch::settings_from_environment()));
  dispatcher_.emplace(std::move(dispatcher));
  return {};
}

Status Communicator::map_memory(Platform& platform, const DeviceFacts& facts, bootstrap::Deadline deadline) {
  struct Seat {
    std::array<std::byte, 16> uuid;
    int device;
  };
  const Seat mine{facts.uuid, device()};
  std::vector<Seat> seats(static_cast<std::size_t>(nranks_));
  PK_TRY(membership_->all_gather(rank_, "devices", std::as_bytes(std::span(&mine, 1)),
                                 std::as_writable_bytes(std::span(seats)), deadline));
  std::vector<int> devices;
  for (int peer = 0; peer < nranks_; ++peer) {
    const Seat& seat = seats[static_cast<std::size_t>(peer)];
    devices.push_back(seat.device);
    DeviceFacts theirs;
    theirs.uuid = seat.uuid;
    if (Status status = platform.check_peer(device(), theirs); !status.ok()) {
      return Status(status.code(), "rank " + std::to_string(peer) + ": " + status.message());
    }
  }

  const std::uint64_t page = platform.granularity();
  const auto whole_pages = [page](std::uint64_t bytes) { return (bytes + page - 1) / page * page; };
  const std::uint64_t control = whole_pages(layout_.bytes);
  PK_ASSIGN(group_, LocalGroup::of(membership_, platform, std::move(devices),
                                   control + whole_pages(settings_.heap_limit)));
  PK_TRY(group_->memory().grow(rank_, control, "start-up memory", deadline));
  heap_ = std::make_unique<Heap>(*membership_, group_->memory(), rank_, control, settings_.heap_limit, page);
  if (platform.kind() == PlatformKind::kHost) {
    // The part's pages come near the thread that starts this rank, which is the one that will use them as a rule.
    log_if_failed(
        topology::bind_memory_near(view().at(rank_, 0), control, topology::numa_node_of_this_thread()));
  }
  return {};
}

Status Communicator::prove_memory(Platform& platform, bootstrap::Deadline deadline) {
  // Everybody writes its number; seeing all of them through the mappings proves that this is shared memory.
  const std::array<std::uint64_t, 2> number{membership_->nonce(0), membership_->nonce(1)};
  PK_TRY(platform.write(device(), reinterpret_cast<std::byte*>(view().control(rank_)->magic), number.data(),
                        sizeof number));
  std::vector<std::byte> arrivals(static_cast<std::size_t>(nranks_));
  const std::byte here{1};
  PK_TRY(membership_->all_gather(rank_, "start-up", std::span(&here, 1), arrivals, deadline));
  for (int peer = 0; peer < nranks_; ++peer) {
    std::array<std::uint64_t, 2> seen{};
    PK_TRY(platform.read(device(), seen.data(),
                         reinterpret_cast<const std::byte*>(view().control(peer)->magic), sizeof seen));
    if (seen != number) {
      return Status(pkcommSystemError, "rank " + std::to_string(rank_) + " does not see the memory of rank " +
                                           std::to_string(peer) +
                                           ": they do not share this machine's memory");
    }
  }
  return {};
}

View Communicator::view() const {
  return View{group_->memory().base(), group_->memory().stride(), rank_, nranks_, layout_};
}

Status Communicator::state() const {
  switch (state_.load(std::memory_order_acquire)) {
    case State::kStarting:
      return Status(pkcommInProgress, "the communicator is starting");
    case State::kFailed: {
      const std::lock_guard lock(mutex_);
      return start_status_;
    }
    default:
      return backend_->look();
  }
}

Status Communicator::ready() const {
  switch (state_.load(std::memory_order_acquire)) {
    case State::kReady:
      return {};
    case State::kStarting:
      return Status(pkcommInvalidUsage, "the communicator is still starting");
    case State::kFinalized:
      return Status(pkcommInvalidUsage, "the communicator has been finalized");
    case State::kFailed:
      break;
  }
  return state();
}

Status Communicator::finalize() {
  if (starter_.joinable()) starter_.join();
  if (state_.load(std::memory_order_acquire) == State::kReady) {
    backend_->finish();
    state_.store(State::kFinalized, std::memory_order_release);
  }
  return state();
}

void Communicator::abort() {
  cancelled_.store(true);
  std::shared_ptr<bootstrap::Membership> membership;
  std::shared_ptr<Backend> backend;
  {
    const std::lock_guard lock(mutex_);
    membership = membership_;
    backend = backend_;
  }
  if (backend) backend->abort();
  if (membership) membership->cancel();
}

void Communicator::remember_error(const Status& status) {
  const std::lock_guard lock(mutex_);
  last_error_ = status.message();
}

std::string Communicator::last_error() const {
  if (state_.load(std::memory_order_acquire) == State::kReady || state_.load() == State::kFinalized) {
    if (const Status failure = backend_->look(); !failure.ok()) return failure.message();
  }
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void Communicator::fill(pkcommCommProperties_t& properties) const {
  pkcommCommProperties_t all{};
  all.size = properties.size;
  all.rank = rank_;
  all.nranks = nranks_;
  all.device = device();
  if (membership_) all.local_ranks = static_cast<int>(membership_->local_ranks().size());
  all.staging_bytes = settings_.staging_bytes;
  if (heap_) all.heap_bytes = heap_->used();
  all.heap_limit_bytes = settings_.heap_limit;
  if (dispatcher_) copy_text(all.multicast_reason, dispatcher_->capabilities().multicast_reason);
  copy_text(all.platform, pkcomm::name(platform_));
  copy_text(all.name, settings_.name);
  std::memcpy(&properties, &all, std::min(properties.size, sizeof all));
}

}  // namespace pkcomm
