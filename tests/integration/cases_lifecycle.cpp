// Ends: handles that are used after it, what is left after many rounds, and programs that end without one.
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "crew.hpp"

using namespace pkcomm::test;

namespace {

using Clock = std::chrono::steady_clock;

/// Every call on a handle that has ended is an invalid argument.
void expect_dead(Rank& self, pkcommComm_t comm, const std::string& when) {
  int number = 0;
  Visible<int> value{1}, sum{0};
  pkcommResult_t error = pkcommSuccess;
  void* memory = nullptr;
  pkcommCommProperties_t properties = {};
  properties.size = sizeof properties;
  const auto dead = [&](pkcommResult_t result, const char* call) {
    self.fails(result, pkcommInvalidArgument, "no live communicator", when + ": " + call);
  };
  dead(pkcommAllReduce(value.data(), sum.data(), 1, pkcommInt32, pkcommSum, comm, self.stream), "all_reduce");
  dead(pkcommSend(value.data(), 1, pkcommInt32, 0, comm, self.stream), "send");
  dead(pkcommBarrier(comm, self.stream), "barrier");
  dead(pkcommCommUserRank(comm, &number), "rank");
  dead(pkcommCommCount(comm, &number), "count");
  dead(pkcommCommDevice(comm, &number), "device");
  dead(pkcommCommGetProperties(comm, &properties), "properties");
  dead(pkcommCommGetAsyncError(comm, &error), "async error");
  dead(pkcommHeapAlloc(comm, 64, &memory), "heap");
  dead(pkcommCommFinalize(comm), "finalize");
  dead(pkcommCommDestroy(comm), "destroy");
  dead(pkcommCommAbort(comm), "abort");
  self.expect(sum[0] == 0, when + ": something was reduced");
}

}  // namespace

TEST_CASE("C24 a communicator that has ended is an invalid argument", "[integration][C24]") {
  const int nranks = GENERATE(1, 2);
  CAPTURE(nranks);

  SECTION("NULL is destroyed and aborted with success") {
    CHECK(pkcommCommDestroy(nullptr) == pkcommSuccess);
    CHECK(pkcommCommAbort(nullptr) == pkcommSuccess);
    CHECK(pkcommCommFinalize(nullptr) == pkcommInvalidArgument);
  }
  SECTION("after destroy") {
    run_world(nranks, [](Rank& self) {
      sum_of_ranks(self);
      const pkcommComm_t comm = std::exchange(self.comm, nullptr);
      self.ok(pkcommCommDestroy(comm), "destroy");
      expect_dead(self, comm, "after destroy");
    });
  }
  SECTION("after finalize only queries and the end are allowed") {
    run_world(nranks, [](Rank& self) {
      sum_of_ranks(self);
      self.ok(pkcommCommFinalize(self.comm), "finalize");
      Visible<int> value{0};
      int rank = -1;
      self.ok(pkcommCommUserRank(self.comm, &rank), "rank");
      self.expect(rank == self.rank, "the rank is " + std::to_string(rank));
      self.fails(
          pkcommAllReduce(value.data(), value.data(), 1, pkcommInt32, pkcommSum, self.comm, self.stream),
          pkcommInvalidUsage, "finalized", "all_reduce");
    });
  }
  SECTION("after abort") {
    std::atomic<int> done{0};
    run_world(nranks, [&](Rank& self) {
      sum_of_ranks(self);
      ++done;  // an abort ends the work of the peers as well
      self.expect(comes_true([&] { return done == self.nranks; }), "the others are not done");
      const pkcommComm_t comm = std::exchange(self.comm, nullptr);
      self.ok(pkcommCommAbort(comm), "abort");
      expect_dead(self, comm, "after abort");
    });
  }
  SECTION("while another thread asks for the asynchronous error") {
    for (int round = 0; round < 20; ++round) {
      run_world(nranks, [](Rank& self) {
        const pkcommComm_t comm = std::exchange(self.comm, nullptr);
        std::atomic<bool> asks{false};
        std::thread other([&] {
          pkcommResult_t result = pkcommSuccess;
          for (const auto begin = Clock::now(); result == pkcommSuccess && seconds_since(begin) < 30;) {
            pkcommResult_t error = pkcommSuccess;
            result = pkcommCommGetAsyncError(comm, &error);
            // The peer may end first, which is no error of work that was never enqueued.
            if (error != pkcommSuccess) self.fail("the error is " + words(error));
            asks = true;
          }
          if (result != pkcommInvalidArgument) self.fail("the last query gave " + words(result));
        });
        self.expect(comes_true([&] { return asks.load(); }), "the other thread did not ask");
        self.ok(pkcommCommDestroy(comm), "destroy");
        other.join();
      });
    }
  }
  SECTION("two threads destroy, one of them succeeds") {
    run_world(nranks, [](Rank& self) {
      const pkcommComm_t comm = std::exchange(self.comm, nullptr);
      pkcommResult_t other = pkcommSuccess;
      std::thread thread([&] { other = pkcommCommDestroy(comm); });
      const pkcommResult_t mine = pkcommCommDestroy(comm);
      thread.join();
      self.expect(
          (mine == pkcommSuccess && other == pkcommInvalidArgument) ||
              (other == pkcommSuccess && mine == pkcommInvalidArgument),
          std::string("the two gave ") + pkcommGetErrorString(mine) + ", " + pkcommGetErrorString(other));
    });
  }
}

namespace {

struct Resources {
  int descriptors, threads, shared_files;
  long resident_bytes;
  std::size_t free_device_bytes;
};

Resources resources() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return {entries("/proc/self/fd"), entries("/proc/self/task"), entries("/dev/shm"),
          pages * ::sysconf(_SC_PAGESIZE), free_device_bytes()};
}

/// One whole life, of a communicator, its split and a window.
void whole_life(Failures& failures, const pkcommUniqueId& id, int rank) {
  run_rank(2, id, rank, failures, [&](Rank& self) {
    sum_of_ranks(self);
    pkcommComm_t part = nullptr;
    if (self.ok(pkcommCommSplit(self.comm, 0, -self.rank, &part, nullptr), "split")) {
      Rank other(1 - self.rank, 2, part, self.stream, failures);
      sum_of_ranks(other);
      self.ok(pkcommCommDestroy(part), "destroy of the part");
    }
    void* memory = nullptr;
    pkcommWindow_t window = nullptr;
    self.ok(pkcommHeapAlloc(self.comm, 8192, &memory), "heap");
    self.ok(pkcommWindowRegister(self.comm, memory, 8192, &window), "register");
    self.ok(pkcommWindowDeregister(self.comm, window), "deregister");
    self.ok(pkcommHeapFree(self.comm, memory), "free");
  });
}

}  // namespace

TEST_CASE("C25 three hundred lives leave nothing behind", "[integration][C25]") {
  if (!a_device_each(2)) return;
  constexpr int kRounds = 300, kFirst = 10;
  struct Turn {
    pkcommUniqueId id;
    std::atomic<int> made{0};
    std::atomic<int> ended{0};
  };
  Shared<Turn> turn;
  Crew crew;
  crew.start(2, [&](int process, Failures& failures) {
    const rlim_t most = on_cuda() ? 256 : 128;  // the driver has some of its own
    const rlimit few{most, most};
    ::setrlimit(RLIMIT_NOFILE, &few);
    Resources before{};
    for (int round = 1; round <= kRounds; ++round) {
      if (process == 0) {
        if (pkcommGetUniqueId(&turn->id) != pkcommSuccess) return failures.add(pkcommGetLastError(nullptr));
        turn->made = round;
      }
      if (!comes_true([&] { return turn->made == round; })) return failures.add("no id came");
      whole_life(failures, turn->id, process);
      ++turn->ended;
      if (!comes_true([&] { return turn->ended == 2 * round; })) return failures.add("the peer did not end");
      if (round == kFirst) before = resources();
    }
    // What ends in the background has ended soon.
    const auto same = [&] {
      const Resources now = resources();
      return now.descriptors == before.descriptors && now.threads == before.threads;
    };
    comes_true(same, 5000);
    const Resources after = resources();
    const auto equal = [&](const char* what, int one, int other) {
      if (one != other)
        failures.add(std::string(what) + ": " + std::to_string(one) + ", then " + std::to_string(other));
    };
    equal("descriptors", before.descriptors, after.descriptors);
    equal("threads", before.threads, after.threads);
    equal("entries of /dev/shm", before.shared_files, after.shared_files);
    const long growth = after.resident_bytes - before.resident_bytes;
    if (before.free_device_bytes > after.free_device_bytes)
      failures.add("device memory went from " + std::to_string(before.free_device_bytes) + " free bytes to " +
                   std::to_string(after.free_device_bytes));
    if (!kSanitized && growth >= 1 << 20) failures.add("memory grew by " + std::to_string(growth) + " bytes");
  });
  CHECK(crew.wait_all(100000) == "");
}

TEST_CASE("C25 five lives in one process, for a leak checker", "[integration][C25]") {
  for (int round = 0; round < 5; ++round) {
    Failures failures;
    pkcommUniqueId id;
    REQUIRE(pkcommGetUniqueId(&id) == pkcommSuccess);
    std::thread other([&] { whole_life(failures, id, 1); });
    whole_life(failures, id, 0);
    other.join();
    CHECK(failures.text() == "");
  }
}

namespace {

/// For what runs after the end of main: what it should destroy.
pkcommComm_t left_over = nullptr;

void destroy_left_over() {
  if (pkcommCommDestroy(left_over) != pkcommSuccess) ::_exit(98);
}

/// Destroys when the static objects go.
struct Destroyer {
  ~Destroyer() { destroy_left_over(); }
};

/// Makes a rank that lives on.
pkcommComm_t make_rank(const pkcommUniqueId& id, int rank, Failures& failures) {
  run_rank(2, id, rank, failures, [](Rank& self) {
    sum_of_ranks(self);
    left_over = std::exchange(self.comm, nullptr);
  });
  return left_over;
}

void exit_without_destroy(Failures&) { std::exit(0); }
void exit_with_handler(Failures&) {
  std::atexit(destroy_left_over);
  std::exit(0);
}
void exit_with_static(Failures&) { std::exit(0); }

/// Reduces on the main thread until the process is gone, since another thread ends it.
void exit_from_other_thread(Failures&) {
  std::thread([] {
    sleep_ms(200);
    std::exit(3);
  }).detach();
  // Never freed: exit() destroys static objects while this thread goes on.
  auto& in = *new Visible<float>(1 << 20);
  auto& out = *new Visible<float>(1 << 20);
  for (;;) {
    if (pkcommAllReduce(in.data(), out.data(), in.size(), pkcommFloat32, pkcommSum, left_over, nullptr) !=
            pkcommSuccess ||
        finish(left_over, nullptr).result != pkcommSuccess) {
      ::pause();
    }
  }
}

}  // namespace

TEST_CASE("C26 programs may end without destroying, or late", "[integration][C26]") {
  struct Row {
    const char* how;
    void (*end)(Failures&);
    int code;
    bool quiet;
  };
  const auto row = GENERATE(values<Row>({
      {"without destroy", exit_without_destroy, 0, true},
      {"destroy by an exit handler", exit_with_handler, 0, true},
      {"destroy by a static object", exit_with_static, 0, true},
      // The later of the two may say that the other died in the middle of a collective.
      {"exit while a collective runs", exit_from_other_thread, 3, false},
  }));
  CAPTURE(row.how);
  if (!a_device_each(2)) return;
  const int files_before = entries("/dev/shm");
  Shared<Ids> ids;
  Shared<std::atomic<int>> ready;
  Crew crew(Crew::kCaptured);
  crew.start(2, [&](int process, Failures& failures) {
    if (row.end == exit_with_static)
      static const Destroyer destroyer;  // made before the library's, so it goes after them
    if (process == 0) ids->make();
    make_rank(ids->wait(), process, failures);
    crew.report(process, failures);
    ready->fetch_add(1);
    comes_true([&] { return *ready == 2; });
    row.end(failures);
  });
  REQUIRE(comes_true([&] { return *ready == 2; }));
  const auto begin = Clock::now();
  for (int process = 0; process < 2; ++process) {
    const Crew::Ending ending = crew.wait(process, 10000);
    CAPTURE(process, ending.err);
    CHECK(ending.failures == "");
    CHECK(ending.code == row.code);
    CHECK(ending.out == "");
    if (row.quiet) CHECK(ending.err == "");
  }
  CHECK(seconds_since(begin) < 2);
  CHECK(entries("/dev/shm") == files_before);
}

namespace {

/// A second copy of the library, which nothing else holds, under a name of its own.
std::string copy_of_library() {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<void*>(&pkcommGetVersion), &info) == 0) return "";
  char path[] = "/tmp/pkcomm-copy-XXXXXX";
  ::close(::mkstemp(path));
  std::error_code error;
  std::filesystem::copy_file(info.dli_fname, path, std::filesystem::copy_options::overwrite_existing, error);
  return error ? "" : path;
}

template <class Function>
Function* find(void* library, const char* name, Function*) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}
#define PK_FIND(library, name) find(library, #name, &name)

}  // namespace

TEST_CASE("C26 the library may be closed after destroy", "[integration][C26]") {
  if (kSanitized) return;  // they refuse RTLD_DEEPBIND
  const std::string path = copy_of_library();
  REQUIRE(!path.empty());
  Crew crew(Crew::kCaptured);
  crew.start(1, [&](int, Failures& failures) {
    for (int round = 0; round < 3; ++round) {
      void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
      if (library == nullptr) return failures.add(::dlerror());
      if (PK_FIND(library, pkcommGetVersion) == &pkcommGetVersion) failures.add("it is no second copy");
      for (int rank = 0; rank < 2; ++rank) use_device(device_of(rank));
      pkcommComm_t comms[2] = {};
      if (PK_FIND(library, pkcommCommInitAll)(comms, 2, devices_of(2).data()) != pkcommSuccess)
        failures.add("init");
      pkcommStream_t streams[2] = {};
      Visible<int> in{1, 2}, out{0, 0};
      PK_FIND(library, pkcommGroupStart)();
      for (int rank = 0; rank < 2; ++rank) {
        use_device(device_of(rank));
        PK_FIND(library, pkcommStreamCreate)(&streams[rank]);
        const auto i = static_cast<std::size_t>(rank);
        PK_FIND(library, pkcommAllReduce)
        (&in[i], &out[i], 1, pkcommInt32, pkcommSum, comms[rank], streams[rank]);
      }
      if (PK_FIND(library, pkcommGroupEnd)() != pkcommSuccess) failures.add("group");
      for (int rank = 0; rank < 2; ++rank) {
        if (PK_FIND(library, pkcommStreamSynchronize)(streams[rank]) != pkcommSuccess)
          failures.add("synchronize");
        const int sum = out[static_cast<std::size_t>(rank)];
        if (sum != 3) failures.add("the sum is " + std::to_string(sum));
      }
      for (int rank = 0; rank < 2; ++rank) {
        if (PK_FIND(library, pkcommCommDestroy)(comms[rank]) != pkcommSuccess) failures.add("destroy");
        if (PK_FIND(library, pkcommStreamDestroy)(streams[rank]) != pkcommSuccess)
          failures.add("stream destroy");
      }
      if (::dlclose(library) != 0) failures.add(::dlerror());
      sleep_ms(300);  // whatever the library left running runs now
    }
    crew.report(0, failures);
    std::exit(0);
  });
  const Crew::Ending ending = crew.wait(0);
  ::unlink(path.c_str());
  CHECK(ending.failures == "");
  CHECK(ending.code == 0);
  CHECK(ending.err == "");
}
