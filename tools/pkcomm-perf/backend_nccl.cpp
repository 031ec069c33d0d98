// Symmetric memory is ncclMemAlloc's, registered as a symmetric window. Exchanges without a function of
// their own are groups of sends and receives, as NCCL's documentation writes them. Bit for bit comparable
// are results that do not depend on the order of evaluation; elsewhere NCCL rounds partial sums, pkcomm
// only the last.
#include "backend_nccl.hpp"

#include <cstdlib>
#include <map>
#include <utility>

#include "nccl_library.hpp"

namespace pkcomm::perf {

namespace {

class Nccl final : public NcclBackend {
 public:
  Nccl(std::unique_ptr<NcclLibrary> library, Device& device)
      : nccl_(*library), library_(std::move(library)), device_(device) {}
  ~Nccl() override {
    if (token_ != nullptr) device_.release(token_, kTokenBytes);
    if (comm_ != nullptr) (void)nccl_->CommAbort(comm_);
  }

  Outcome open(Team& team) {
    NcclUniqueId id{};
    if (team.rank() == 0) PERF_TRY(nccl_.check(nccl_->GetUniqueId(&id), "ncclGetUniqueId"));
    PERF_TRY(team.broadcast(&id, sizeof id));
    PERF_TRY(nccl_.check(nccl_->CommInitRank(&comm_, team.nranks(), id, team.rank()), "ncclCommInitRank"));
    Result<void*> token = device_.allocate(kTokenBytes);
    PERF_TRY(token);
    token_ = token.value();
    PERF_TRY(device_.fill(static_cast<std::byte*>(token_), 0, kTokenBytes));
    PERF_TRY(team.barrier());  // all have allocated theirs
    PERF_TRY(align());         // what NCCL sets up at a first call is set up now
    return device_.synchronize();
  }

  Outcome close() override {
    return nccl_.check(nccl_->CommDestroy(std::exchange(comm_, nullptr)), "ncclCommDestroy");
  }

  std::string_view name() const override { return "nccl"; }
  pkcommComm_t comm() const override { return nullptr; }
  NcclFacts facts() const override {
    const char* nvls = std::getenv("NCCL_NVLS_ENABLE");
    return {nccl_version_in_words(nccl_.version()), nccl_.file(), nvls != nullptr ? nvls : "unset"};
  }

  bool has(const Collective& collective) const override { return collective.id != CollectiveId::kPut; }
  bool can(const Collective& collective, Op op) const override {
    return !collective.reduces || op != Op::kMulSum;  // would need another function to make
  }
  bool is_exact(const Collective& collective, pkcommDataType_t type, Op op) const override {
    if (!collective.reduces || op == Op::kMin || op == Op::kMax) return true;
    if (op == Op::kAvg || op == Op::kMulSum) return false;
    return !describe(type).is_float || type == pkcommFloat32 || type == pkcommFloat64;
  }

  Result<void*> allocate(Memory memory, std::size_t bytes) override {
    if (memory == Memory::kMalloc) return device_.allocate(bytes);
    if (!nccl_.has_windows()) {
      return Error{"-R 2: NCCL " + nccl_version_in_words(nccl_.version()) +
                   " has no symmetric windows (2.27 has)"};
    }
    void* base = nullptr;
    PERF_TRY(nccl_.check(nccl_->MemAlloc(&base, bytes), "ncclMemAlloc", comm_));
    NcclWindow window = nullptr;
    PERF_TRY(nccl_.check(nccl_->CommWindowRegister(comm_, base, bytes, &window, kNcclSymmetricWindow),
                         "ncclCommWindowRegister", comm_));
    if (window == nullptr) {
      (void)nccl_->MemFree(base);
      return Error{"-R 2: NCCL made no symmetric window here (NCCL_CUMEM_ENABLE, NCCL_WIN_ENABLE)"};
    }
    windows_[base] = window;
    return base;
  }
  void release(Memory memory, void* base, std::size_t bytes) override {
    if (memory == Memory::kMalloc) return device_.release(base, bytes);
    // What fails here shows in the next call on the communicator.
    (void)nccl_->CommWindowDeregister(comm_, windows_[base]);
    windows_.erase(base);
    (void)nccl_->MemFree(base);
  }

  Result<pkcommRedOp_t> make_op(Op op, pkcommDataType_t, const void*) override {
    return static_cast<pkcommRedOp_t>(op);
  }
  Outcome drop_op(Op, pkcommRedOp_t) override { return {}; }

  Outcome run(const Collective& collective, const Call& call, int repeats,
              std::string* unsupported) override {
    NcclResult first = repeats > 1 ? nccl_->GroupStart() : kNcclSuccess;
    for (int i = 0; i < repeats && first == kNcclSuccess; ++i) first = call_once(collective.id, call);
    if (repeats > 1) {
      const NcclResult end = nccl_->GroupEnd();
      if (first == kNcclSuccess) first = end;
    }
    const Outcome outcome = nccl_.check(first, collective.name.data(), comm_);
    if (outcome.ok() || (first != kNcclInvalidArgument && first != kNcclInvalidUsage)) return outcome;
    *unsupported = outcome.error().text;
    return {};
  }

  Outcome align() override {
    return nccl_.check(nccl_->AllReduce(token_, token_, 1, pkcommInt32, pkcommSum, comm_, device_.stream()),
                       "ncclAllReduce", comm_);
  }

  Outcome health() override {
    NcclResult fault = kNcclSuccess;
    PERF_TRY(nccl_.check(nccl_->CommGetAsyncError(comm_, &fault), "ncclCommGetAsyncError", comm_));
    return nccl_.check(fault, "NCCL's work on the stream", comm_);
  }

 private:
  static constexpr std::size_t kTokenBytes = 4096;

  NcclResult call_once(CollectiveId id, const Call& c) {
    const std::size_t n = c.count;
    const int root = c.seat.root;
    switch (id) {
      case CollectiveId::kAllReduce:
        return nccl_->AllReduce(c.send, c.recv, n, c.type, c.op, comm_, c.stream);
      case CollectiveId::kReduce:
        return nccl_->Reduce(c.send, c.recv, n, c.type, c.op, root, comm_, c.stream);
      case CollectiveId::kBroadcast:
        return nccl_->Broadcast(c.send, c.recv, n, c.type, root, comm_, c.stream);
      case CollectiveId::kAllGather:
        return nccl_->AllGather(c.send, c.recv, n, c.type, comm_, c.stream);
      case CollectiveId::kReduceScatter:
        return nccl_->ReduceScatter(c.send, c.recv, n, c.type, c.op, comm_, c.stream);
      case CollectiveId::kAllToAll:
        if (nccl_->AlltoAll != nullptr) return nccl_->AlltoAll(c.send, c.recv, n, c.type, comm_, c.stream);
        return exchange(c, [&](int peer) { return Part{times(n, peer), n, times(n, peer), n}; });
      case CollectiveId::kAllToAllV:
        return exchange(c, [&](int peer) {
          const auto i = static_cast<std::size_t>(peer);
          return Part{c.displacements[i], c.send_counts[i], c.displacements[i], c.recv_counts[i]};
        });
      case CollectiveId::kGather:
        return exchange(c, [&](int peer) {
          return Part{0, peer == root ? n : 0, times(n, peer), c.seat.rank == root ? n : 0};
        });
      case CollectiveId::kScatter:
        return exchange(c, [&](int peer) {
          return Part{times(n, peer), c.seat.rank == root ? n : 0, 0, peer == root ? n : 0};
        });
      case CollectiveId::kSendRecv: {
        const int nranks = c.seat.nranks;
        const int next = (c.seat.rank + 1) % nranks;
        const int previous = (c.seat.rank + nranks - 1) % nranks;
        return exchange(c, [&](int peer) {
          return Part{0, peer == next ? n : 0, 0, peer == previous ? n : 0};
        });
      }
      case CollectiveId::kBarrier:
        return nccl_->AllReduce(token_, token_, 1, pkcommInt32, pkcommSum, comm_, c.stream);
      case CollectiveId::kPut:
        break;
    }
    return kNcclInvalidUsage;
  }

  // What goes to and comes from one rank, in elements.
  struct Part {
    std::size_t send_at, send_count, recv_at, recv_count;
  };
  static std::size_t times(std::size_t count, int ranks) { return count * static_cast<std::size_t>(ranks); }

  template <class PartOf>
  NcclResult exchange(const Call& c, PartOf part_of) {
    NcclResult first = nccl_->GroupStart();
    for (int peer = 0; peer < c.seat.nranks && first == kNcclSuccess; ++peer) {
      const Part part = part_of(peer);
      const auto* out = static_cast<const std::byte*>(c.send) + part.send_at * c.element;
      auto* in = static_cast<std::byte*>(c.recv) + part.recv_at * c.element;
      if (part.send_count > 0) first = nccl_->Send(out, part.send_count, c.type, peer, comm_, c.stream);
      if (part.recv_count > 0 && first == kNcclSuccess) {
        first = nccl_->Recv(in, part.recv_count, c.type, peer, comm_, c.stream);
      }
    }
    const NcclResult end = nccl_->GroupEnd();
    return first != kNcclSuccess ? first : end;
  }

  NcclLibrary& nccl_;
  std::unique_ptr<NcclLibrary> library_;
  Device& device_;
  NcclComm comm_ = nullptr;
  void* token_ = nullptr;  // what align() reduces
  std::map<void*, NcclWindow> windows_;
};

}  // namespace

Result<std::unique_ptr<NcclBackend>> open_nccl(const Options& options, Team& team, Device& device) {
  if (device.platform() != "cuda") return Error{"--backend nccl: NCCL runs on GPUs alone (--platform cuda)"};
  Result<std::unique_ptr<NcclLibrary>> library = NcclLibrary::open(options.nccl_library);
  PERF_TRY(library);
  auto backend = std::make_unique<Nccl>(std::move(library.value()), device);
  PERF_TRY(backend->open(team));
  return std::unique_ptr<NcclBackend>(std::move(backend));
}

}  // namespace pkcomm::perf
