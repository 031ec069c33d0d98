// What calls leave as it was: affinity, signals, locale, directory and floating-point modes of the caller.
#include <fenv.h>
#include <sched.h>
#include <xmmintrin.h>

#include <array>
#include <clocale>
#include <cstring>
#include <filesystem>

#include "crew.hpp"

using namespace pkcomm::test;

namespace {

/// What belongs to the caller.
struct Surroundings {
  cpu_set_t affinity;
  sigset_t mask;
  std::array<struct sigaction, 65> handlers;
  std::string locale, directory;
  int rounding;
  unsigned control;  // of SSE: rounding, flush to zero, denormals are zero, what traps

  static Surroundings now() {
    Surroundings s = {};
    ::sched_getaffinity(0, sizeof s.affinity, &s.affinity);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &s.mask);
    for (int signal = 1; signal <= 64; ++signal)
      ::sigaction(signal, nullptr, &s.handlers[static_cast<std::size_t>(signal)]);
    s.locale = ::setlocale(LC_ALL, nullptr);
    s.directory = std::filesystem::current_path();
    s.rounding = ::fegetround();
    s.control = _mm_getcsr() & ~0x3fU;  // without the flags of what has happened
    return s;
  }
  std::string differs(const Surroundings& other) const {
    if (!CPU_EQUAL(&affinity, &other.affinity)) return "the affinity";
    for (int signal = 1; signal <= 64; ++signal) {
      if (::sigismember(&mask, signal) != ::sigismember(&other.mask, signal)) return "the signal mask";
      const auto at = static_cast<std::size_t>(signal);
      if (handlers[at].sa_handler != other.handlers[at].sa_handler) return "a signal handler";
    }
    if (locale != other.locale) return "the locale";
    if (directory != other.directory) return "the current directory";
    if (rounding != other.rounding) return "the rounding mode";
    if (control != other.control) return "the floating-point control word";
    return "";
  }
};

/// Unlike what any library would choose.
void make_odd(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ::sched_setaffinity(0, sizeof one, &one);
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGUSR1);
  ::sigaddset(&mask, SIGRTMIN + 3);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::fesetround(FE_UPWARD);
  _mm_setcsr(_mm_getcsr() | 0x8040U);  // flush to zero, denormals are zero
}

/// Calls that succeed and calls that fail; after each, everything is as it was.
void watch_rank(Failures& failures, const pkcommUniqueId& id, int rank) {
  cpu_set_t allowed;
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  use_device(device_of(rank));
  make_odd(core);
  const Surroundings before = Surroundings::now();
  const auto watch = [&](const char* call, pkcommResult_t result, pkcommResult_t wanted) {
    if (result != wanted) failures.add(std::string(call) + " gave " + words(result));
    const std::string changed = before.differs(Surroundings::now());
    if (!changed.empty()) failures.add(std::string(call) + " changed " + changed);
  };
  pkcommConfig_t config = limited_config();
  pkcommComm_t comm = nullptr, part = nullptr;
  pkcommStream_t stream = nullptr;
  watch("init of no rank", pkcommCommInitRankConfig(&comm, 2, id, 2, &config), pkcommInvalidArgument);
  watch("init", pkcommCommInitRankConfig(&comm, 2, id, rank, &config), pkcommSuccess);
  watch("stream", pkcommStreamCreate(&stream), pkcommSuccess);

  // Rounded to nearest although the caller rounds upward, and no denormal lost: 1 + 2^-24 is 1, 2^-149 + 0 is 2^-149.
  Visible<float> small{rank == 0 ? 1.0F : 0x1p-24F, 0}, sums(2);
  const std::uint32_t denormal = rank == 0 ? 1 : 0;
  std::memcpy(&small[1], &denormal, sizeof denormal);
  watch("all_reduce", pkcommAllReduce(small.data(), sums.data(), 2, pkcommFloat32, pkcommSum, comm, stream),
        pkcommSuccess);
  watch("synchronize", finish(comm, stream).result, pkcommSuccess);
  std::uint32_t bits[2] = {};
  std::memcpy(bits, sums.data(), sizeof bits);
  if (bits[0] != 0x3f800000 || bits[1] != 1)
    failures.add("the caller's floating-point modes changed the sum");
  watch("all_reduce of nothing",
        pkcommAllReduce(nullptr, sums.data(), 2, pkcommFloat32, pkcommSum, comm, stream),
        pkcommInvalidArgument);

  watch("split", pkcommCommSplit(comm, 0, rank, &part, nullptr), pkcommSuccess);
  pkcommComm_t nobody = nullptr;
  watch("bad split", pkcommCommSplit(comm, -5, rank, &nobody, nullptr), pkcommInvalidArgument);
  void* memory = nullptr;
  pkcommWindow_t window = nullptr, none = nullptr;
  watch("heap", pkcommHeapAlloc(comm, 1 << 20, &memory), pkcommSuccess);
  watch("register", pkcommWindowRegister(comm, memory, 4096, &window), pkcommSuccess);
  watch("register of foreign memory", pkcommWindowRegister(comm, bits, sizeof bits, &none),
        pkcommUnsupported);
  watch("deregister", pkcommWindowDeregister(comm, window), pkcommSuccess);
  watch("deregister twice", pkcommWindowDeregister(comm, window), pkcommInvalidArgument);
  watch("free", pkcommHeapFree(comm, memory), pkcommSuccess);
  watch("free twice", pkcommHeapFree(comm, memory), pkcommInvalidArgument);
  watch("abort", pkcommCommAbort(part), pkcommSuccess);
  watch("abort twice", pkcommCommAbort(part), pkcommInvalidArgument);
  watch("finalize", pkcommCommFinalize(comm), pkcommSuccess);
  watch("destroy", pkcommCommDestroy(comm), pkcommSuccess);
  watch("destroy twice", pkcommCommDestroy(comm), pkcommInvalidArgument);
  watch("stream destroy", pkcommStreamDestroy(stream), pkcommSuccess);
  watch("stream destroy twice", pkcommStreamDestroy(stream), pkcommInvalidArgument);
  watch("id", pkcommGetUniqueId(nullptr), pkcommInvalidArgument);
}

}  // namespace

TEST_CASE("C43 calls leave the thread and the process as they were", "[integration][C43]") {
  if (!a_device_each(2)) return;
  const bool on_worker = GENERATE(false, true);
  CAPTURE(on_worker);
  Shared<Ids> ids;
  Crew crew;
  crew.start(2, [&](int process, Failures& failures) {
    ::setlocale(LC_ALL, "C.UTF-8");
    const Surroundings before = Surroundings::now();
    if (process == 0) ids->make();
    const std::string changed = before.differs(Surroundings::now());
    if (!changed.empty()) failures.add("making an id changed " + changed);
    if (on_worker) {
      std::thread([&] { watch_rank(failures, ids->wait(), process); }).join();
    } else {
      watch_rank(failures, ids->wait(), process);
    }
  });
  CHECK(crew.wait_all() == "");
}
