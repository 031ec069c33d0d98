// Variables with odd values, misspelt variables, where lines go, and what calls leave as it was.
#include <fenv.h>
#include <sched.h>
#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "crew.hpp"

using namespace pkcomm::test;

namespace {

/// Everything to the environment.
constexpr pkcommConfig_t kUnset = PKCOMM_CONFIG_INITIALIZER;

std::ptrdiff_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

constexpr std::array kValues = {
    "0",   "-1", "1",   "7",   "480", "1000000", "2147483648", "9223372036854775808",
    "1e3", "4K", "4KB", "abc", "",    " 8 "};

struct Variable {
  const char* name;
  std::vector<std::string> good;  // of kValues; the others are refused
};
const std::vector<Variable>& variables() {
  static const std::vector<Variable> all = {
      {"PKCOMM_STAGING", {"2147483648"}},
      {"PKCOMM_CHUNK", {"1000000", "4K"}},
      {"PKCOMM_MIN_CTAS", {"1", "7"}},
      {"PKCOMM_MAX_CTAS", {"1", "7"}},
      {"PKCOMM_HEAP_SIZE", {"1000000", "2147483648"}},
      {"PKCOMM_SPIN_US", {"0", "1", "7", "480", "1000000"}},
      {"PKCOMM_TIMEOUT", {"0", "1", "7", "480", "1000000"}},
      {"PKCOMM_INIT_TIMEOUT", {"1", "7", "480", "1000000"}},
  };
  return all;
}

/// What the communicator says that it uses.
void expect_used(Rank& self, const std::string& name, const std::string& value, bool good) {
  pkcommCommProperties_t properties = {};
  properties.size = sizeof properties;
  self.ok(pkcommCommGetProperties(self.comm, &properties), "properties");
  const auto equal = [&](std::size_t used, std::size_t otherwise) {
    const std::size_t wanted = good ? std::stoull(value) : otherwise;
    self.expect(used == wanted, "uses " + std::to_string(used) + " instead of " + std::to_string(wanted));
  };
  if (name == "PKCOMM_STAGING") equal(properties.staging_bytes, std::size_t{64} << 20);
  if (name == "PKCOMM_HEAP_SIZE") equal(properties.heap_limit_bytes, std::size_t{16} << 30);
}

}  // namespace

TEST_CASE("C40 an odd value is used and right, or refused with one line", "[integration][C40]") {
  for (const Variable& variable : variables()) {
    for (const std::string value : kValues) {
      CAPTURE(variable.name, value);
      const bool good = std::find(variable.good.begin(), variable.good.end(), value) != variable.good.end();
      // A process with a GPU takes a second to start, and what is refused is refused before there is a platform.
      if (on_cuda() && !good && value != "abc" && value != "-1") continue;
      Crew crew(Crew::kCaptured);
      crew.start(1, [&](int, Failures& failures) {
        ::setenv(variable.name, value.c_str(), 1);
        run_threads(
            2, failures,
            [&](Rank& self) {
              expect_float_sums(self, 2, "8 bytes");
              expect_float_sums(self, 1 << 18, "1 MiB");
              expect_used(self, variable.name, value, good);
            },
            kUnset);
      });
      const Crew::Ending ending = crew.wait(0);
      CHECK(ending.failures == "");
      CHECK(ending.code == 0);
      CHECK(ending.out == "");
      if (good) {
        CHECK(ending.err == "");
      } else {
        CHECK(lines_in(ending.err) == 1);
        CHECK_THAT(ending.err, contains_text(std::string(variable.name) + "=\"" + value + "\": "));
        CHECK_THAT(ending.err, contains_text("; allowed "));
        CHECK_THAT(ending.err, contains_text(".."));
      }
    }
  }
}

TEST_CASE("C40 odd values reduce 512 MiB rightly", "[integration][C40][slow]") {
  struct Row {
    const char* name;
    const char* value;
  };
  const auto row = GENERATE(values<Row>({{"PKCOMM_STAGING", "2147483648"},
                                         {"PKCOMM_STAGING", "1M"},
                                         {"PKCOMM_CHUNK", "4K"},
                                         {"PKCOMM_CHUNK", "1000000"},
                                         {"PKCOMM_MAX_CTAS", "1"},
                                         {"PKCOMM_MAX_CTAS", "7"},
                                         {"PKCOMM_MIN_CTAS", "7"},
                                         {"PKCOMM_SPIN_US", "0"}}));
  CAPTURE(row.name, row.value);
  Crew crew(Crew::kCaptured);
  crew.start(1, [&](int, Failures& failures) {
    ::setenv(row.name, row.value, 1);
    reserve_visible((std::size_t{2} << 30) + 4096);
    run_threads(
        2, failures, [](Rank& self) { expect_float_sums(self, std::size_t{128} << 20, "512 MiB"); }, kUnset);
  });
  const Crew::Ending ending = crew.wait(0);
  CHECK(ending.failures == "");
  CHECK(ending.code == 0);
  CHECK(ending.err == "");
}

namespace {

std::string chosen(Rank& self, pkcommCollective_t collective) {
  pkcommExplainRequest_t request = PKCOMM_EXPLAIN_REQUEST_INITIALIZER;
  request.collective = collective;
  request.count = 1024;
  pkcommExplanation_t explanation = {};
  explanation.size = sizeof explanation;
  self.ok(pkcommExplain(&request, self.comm, &explanation, nullptr, 0), "explain");
  return explanation.chosen >= 0 ? explanation.candidate[explanation.chosen].algorithm : "none";
}

}  // namespace

TEST_CASE("C41 misspelt variables and names are told, once, with what was meant", "[integration][C41]") {
  struct Row {
    const char* why;
    const char* name;
    const char* value;
    std::vector<std::string> line;  // parts of the one line; empty: nothing is said
    const char* all_reduce;         // the algorithm of all_reduce, or null: any
    const char* not_all_reduce;
  };
  const auto row = GENERATE(values<Row>({
      {"a name too many",
       "PKCOMM_ALGOS",
       "two_shot_ll",
       {"PKCOMM_ALGOS", "PKCOMM_ALGORITHM"},
       nullptr,
       nullptr},
      {"another library's name",
       "PKCOMM_ALGO",
       "two_shot_ll",
       {"PKCOMM_ALGO ", "PKCOMM_ALGORITHM"},
       nullptr,
       nullptr},
      {"a prefix misspelt", "PKCOM_DEBUG", "info", {"PKCOM_DEBUG", "PKCOMM_LOG"}, nullptr, nullptr},
      {"no such algorithm",
       "PKCOMM_ALGORITHM",
       "ring",
       {"PKCOMM_ALGORITHM", "\"ring\"",
        "allowed one_shot_ll, two_shot_ll, direct_ldst, direct_tma, copy_engine, multimem, "
        "multimem_emulated, pairwise"},
       nullptr,
       nullptr},
      {"no such collective",
       "PKCOMM_ALGORITHM",
       "allreduce:two_shot_ll",
       {"PKCOMM_ALGORITHM", "\"allreduce\"", "all_reduce"},
       nullptr,
       nullptr},
      {"a forbidden list", "PKCOMM_ALGORITHM", "^one_shot_ll,two_shot_ll", {}, nullptr, "one_shot_ll"},
      {"mixed case", "PKCOMM_ALGORITHM", "Two_Shot_LL", {}, "two_shot_ll", nullptr},
      {"for one collective", "PKCOMM_ALGORITHM", "all_reduce:direct_ldst", {}, "direct_ldst", nullptr},
      {"the shim's variables are its own matter", "PKCOMM_NCCL_ANYTHING", "1", {}, nullptr, nullptr},
  }));
  CAPTURE(row.why);
  Crew crew(Crew::kCaptured);
  crew.start(1, [&](int, Failures& failures) {
    ::setenv(row.name, row.value, 1);
    run_threads(2, failures, [&](Rank& self) {
      for (int i = 0; i < 3; ++i) expect_float_sums(self, 1024);
      const std::string algorithm = chosen(self, pkcommCollAllReduce);
      self.expect(row.all_reduce == nullptr || algorithm == row.all_reduce,
                  "all_reduce is done by " + algorithm);
      self.expect(row.not_all_reduce == nullptr || algorithm != row.not_all_reduce,
                  "all_reduce is done by " + algorithm);
      Visible<int> value{self.rank == 1 ? 77 : 0};
      self.ok(pkcommBroadcast(value.data(), value.data(), 1, pkcommInt32, 1, self.comm, self.stream),
              "broadcast");
      self.synchronize("broadcast");
      self.expect(value[0] == 77, "broadcast gave " + std::to_string(value[0]));
    });
  });
  const Crew::Ending ending = crew.wait(0);
  CAPTURE(ending.err);
  CHECK(ending.failures == "");
  CHECK(ending.code == 0);
  CHECK(lines_in(ending.err) == (row.line.empty() ? 0 : 1));
  for (const std::string& part : row.line) CHECK_THAT(ending.err, contains_text(part));
}

TEST_CASE("C41 a forced algorithm that a collective lacks gives way, and it is said once",
          "[integration][C41]") {
  Crew crew(Crew::kCaptured);
  crew.start(1, [&](int, Failures& failures) {
    ::setenv("PKCOMM_ALGORITHM", "two_shot_ll", 1);
    run_threads(2, failures, [](Rank& self) {
      expect_float_sums(self, 1024);
      for (int i = 0; i < 3; ++i) {
        const Visible<int> mine{self.rank + 5};
        Visible<int> all(2);
        self.ok(pkcommAllGather(mine.data(), all.data(), 1, pkcommInt32, self.comm, self.stream),
                "all_gather");
        self.synchronize("all_gather");
        self.expect(all[0] == 5 && all[1] == 6, "all_gather is wrong");
      }
    });
  });
  const Crew::Ending ending = crew.wait(0);
  CAPTURE(ending.err);
  CHECK(ending.failures == "");
  CHECK(lines_in(ending.err) == 1);
  CHECK_THAT(ending.err, contains_text("PKCOMM_ALGORITHM"));
  CHECK_THAT(ending.err, contains_text("all_gather"));
}

namespace {

/// Every line begins with a time, says who speaks and how serious it is, and ends.
bool whole_lines(const std::string& text) {
  if (text.empty() || text.back() != '\n') return false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (line.size() < 20 || line[2] != ':' || line[5] != ':' || line.find(" pkcomm[") != 15) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

TEST_CASE("C42 standard output stays empty, and lines are whole and written at once", "[integration][C42]") {
  if (!a_device_each(2)) return;
  const std::string level = GENERATE("", "info", "debug");
  CAPTURE(level);
  Shared<Ids> ids;
  Shared<std::atomic<int>> reduced;
  Crew crew(Crew::kCaptured);
  crew.start(2, [&](int process, Failures& failures) {
    if (!level.empty()) ::setenv("PKCOMM_LOG", level.c_str(), 1);
    if (process == 0) ids->make();
    run_rank(2, ids->wait(), process, failures, [&](Rank& self) {
      expect_float_sums(self, 100000);
      ++*reduced;
      ::pause();
    });
  });
  REQUIRE(comes_true([&] { return *reduced == 2; }));
  crew[0].send(SIGSTOP);  // so that the end of one is no news to the other
  crew[1].send(SIGKILL);
  crew[0].send(SIGKILL);
  for (int process = 0; process < 2; ++process) {
    const Crew::Ending ending = crew.wait(process);
    CAPTURE(process, ending.err);
    CHECK(ending.code == 128 + SIGKILL);
    CHECK(ending.out == "");
    if (level.empty()) {
      CHECK(ending.err == "");
    } else {
      CHECK(whole_lines(ending.err));
      CHECK_THAT(ending.err, contains_text("is ready"));
    }
  }
}

TEST_CASE("C42 a file pattern gives each process its file", "[integration][C42]") {
  if (!a_device_each(2)) return;
  char directory[] = "/tmp/pkcomm-test-XXXXXX";
  REQUIRE(::mkdtemp(directory) != nullptr);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  Shared<Ids> ids;
  Crew crew(Crew::kCaptured);
  crew.start(2, [&](int process, Failures& failures) {
    ::setenv("PKCOMM_LOG", "info", 1);
    ::setenv("PKCOMM_LOG_FILE", (std::string(directory) + "/%h.%p.log").c_str(), 1);
    if (process == 0) ids->make();
    run_rank(2, ids->wait(), process, failures, sum_of_ranks);
  });
  for (int process = 0; process < 2; ++process) {
    const std::string name =
        std::string(directory) + "/" + host + "." + std::to_string(crew[process].pid()) + ".log";
    const Crew::Ending ending = crew.wait(process);
    CHECK(ending.failures == "");
    CHECK(ending.out == "");
    CHECK(ending.err == "");
    std::ifstream file(name);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    CAPTURE(name, text);
    CHECK(whole_lines(text));
    CHECK_THAT(text, contains_text("rank " + std::to_string(process) + " of 2 is ready"));
  }
  CHECK(entries(directory) == 2);
  std::filesystem::remove_all(directory);
}

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
  // A CUDA stream that has been destroyed is an address of the driver's and nobody's to check.
  if (!on_cuda()) watch("stream destroy twice", pkcommStreamDestroy(stream), pkcommInvalidArgument);
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
