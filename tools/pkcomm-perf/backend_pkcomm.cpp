// pkcomm as a backend. The device decides the platform before the communicator starts, since a rank's
// device must be the current one from the beginning; that both agree is checked here.
#include <cstring>

#include "backend.hpp"

namespace pkcomm::perf {

namespace {

class Pkcomm final : public PkcommBackend {
 public:
  explicit Pkcomm(Device& device) : device_(device) {}
  ~Pkcomm() override {
    if (comm_ != nullptr) (void)pkcommCommDestroy(comm_);
  }

  Outcome open(const Options& options, Team& team) {
    pkcommUniqueId id{};
    if (team.rank() == 0) PERF_TRY(check(pkcommGetUniqueId(&id), "pkcommGetUniqueId"));
    PERF_TRY(team.broadcast(&id, sizeof id));
    pkcommConfig_t config = PKCOMM_CONFIG_INITIALIZER;
    config.blocking = 1;
    config.device = device_.index();
    config.name = "pkcomm-perf";
    if (options.timeout_s > 0) config.timeout_ms = options.timeout_s * std::int64_t{1000};
    PERF_TRY(check(pkcommCommInitRankConfig(&comm_, team.nranks(), id, team.rank(), &config),
                   "pkcommCommInitRankConfig"));
    const Result<pkcommCommProperties_t> found = properties();
    PERF_TRY(found);
    const std::string platform = found.value().platform;
    if (platform == device_.platform()) return {};
    return Error{"the library chose the platform " + platform + ", where " + std::string(device_.platform()) +
                 " was to be measured: say which by --platform"};
  }

  std::string_view name() const override { return "pkcomm"; }
  bool has(const Collective&) const override { return true; }
  bool can(const Collective&, Op) const override { return true; }
  bool is_exact(const Collective&, pkcommDataType_t, Op) const override { return true; }

  Result<void*> allocate(Memory memory, std::size_t bytes) override {
    if (memory == Memory::kMalloc) return device_.allocate(bytes);
    void* base = nullptr;
    PERF_TRY(check(pkcommHeapAlloc(comm_, bytes, &base), "pkcommHeapAlloc", comm_));
    return base;
  }
  void release(Memory memory, void* base, std::size_t bytes) override {
    if (memory == Memory::kMalloc) {
      device_.release(base, bytes);
    } else {
      (void)pkcommHeapFree(comm_, base);  // fails only where the communicator has, which is reported as such
    }
  }

  Result<pkcommRedOp_t> make_op(Op op, pkcommDataType_t type, const void* scalar) override {
    if (op != Op::kMulSum) return static_cast<pkcommRedOp_t>(op);
    pkcommRedOp_t made = pkcommSum;
    PERF_TRY(check(pkcommRedOpCreatePreMulSum(&made, scalar, type, pkcommScalarHostImmediate, comm_),
                   "pkcommRedOpCreatePreMulSum", comm_));
    return made;
  }
  Outcome drop_op(Op op, pkcommRedOp_t value) override {
    return op == Op::kMulSum ? check(pkcommRedOpDestroy(value, comm_), "pkcommRedOpDestroy", comm_)
                             : Outcome{};
  }

  Outcome run(const Collective& collective, const Call& call, int repeats,
              std::string* unsupported) override {
    pkcommResult_t first = pkcommSuccess;
    if (repeats > 1 && collective.grouped) first = pkcommGroupStart();
    for (int i = 0; i < repeats && first == pkcommSuccess; ++i) first = collective.run(call);
    if (repeats > 1 && collective.grouped) {
      const pkcommResult_t end = pkcommGroupEnd();
      if (first == pkcommSuccess) first = end;
    }
    if (first != pkcommUnsupported) return check(first, collective.name.data(), comm_);
    *unsupported = pkcommGetLastError(nullptr);
    return {};
  }

  Outcome align() override { return check(pkcommBarrier(comm_, device_.stream()), "pkcommBarrier", comm_); }

  Outcome health() override {
    pkcommResult_t fault = pkcommSuccess;
    PERF_TRY(check(pkcommCommGetAsyncError(comm_, &fault), "pkcommCommGetAsyncError"));
    if (fault == pkcommSuccess) return {};
    return Error{std::string(pkcommGetErrorString(fault)) + ": " + pkcommGetLastError(comm_),
                 fault == pkcommRemoteError || fault == pkcommAborted};
  }

  pkcommComm_t comm() const override { return comm_; }
  Result<pkcommCommProperties_t> properties() const override {
    pkcommCommProperties_t now{};
    now.size = sizeof now;
    PERF_TRY(check(pkcommCommGetProperties(comm_, &now), "pkcommCommGetProperties", comm_));
    return now;
  }
  Outcome finalize() override { return check(pkcommCommFinalize(comm_), "pkcommCommFinalize", comm_); }

 private:
  Device& device_;
  pkcommComm_t comm_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<PkcommBackend>> open_pkcomm(const Options& options, Team& team, Device& device) {
  auto backend = std::make_unique<Pkcomm>(device);
  PERF_TRY(backend->open(options, team));
  return std::unique_ptr<PkcommBackend>(std::move(backend));
}

}  // namespace pkcomm::perf
