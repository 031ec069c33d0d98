// The same numbers have the same bits at every size, on every rank; and calls that follow each other at once stay apart.
#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <thread>

#include "integration/cases.hpp"

using namespace pkcomm::test;

namespace {

std::vector<std::string> forced_algorithms(const std::function<bool(const std::string&)>& wanted) {
  std::vector<std::string> names;
  for (const std::string& name : algorithms()) {
    if (!name.empty() && wanted(name)) names.push_back(name);
  }
  return names;
}
std::vector<std::string> between_windows() {
  return forced_algorithms([](const std::string& name) { return !name.ends_with("_ll"); });
}
std::vector<std::string> through_staging() {
  return forced_algorithms([](const std::string& name) { return name != "multimem_emulated"; });
}

/// Work on a stream between the collectives: what a kernel would do.
struct Write {
  float* at;
  std::size_t count;
  float value;
  std::int64_t delay_us;

  static void run(void* self) {
    const auto* const write = static_cast<const Write*>(self);
    if (write->delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(write->delay_us));
    for (std::size_t i = 0; i < write->count; ++i) write->at[i] = write->value;
  }
};
struct Look {
  const float* at;
  std::size_t count;
  float wanted;
  std::size_t wrong;

  static void run(void* self) {
    auto* const look = static_cast<Look*>(self);
    look->wrong = 0;
    for (std::size_t i = 0; i < look->count; ++i) look->wrong += look->at[i] == look->wanted ? 0 : 1;
  }
};

/// An input is overwritten with NaN as soon as its all_reduce is over here; no output may show one.
void overwrite_behind_all_reduce(Rank& self, Place place, std::size_t count, int rounds) {
  constexpr int kQueued = 50;
  Memory send(self, place, count * 4, 4), recv(self, place, count * 4, 4);
  std::minstd_rand random(static_cast<unsigned>(self.rank + 1));
  std::vector<Write> writes(2 * kQueued);
  std::vector<Look> looks(kQueued);
  const auto n = static_cast<float>(self.nranks);
  for (int round = 0; round < rounds;) {
    const int first = round;
    for (int i = 0; i < kQueued && round < rounds; ++i, ++round) {
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t delay_us =
          self.rank == 1 && random() % 8 == 0 ? static_cast<std::int64_t>(random() % 200) : 0;
      writes[2 * at] = {send.as<float>(), count, static_cast<float>(round % 1000 + self.rank), delay_us};
      writes[2 * at + 1] = {send.as<float>(), count, std::numeric_limits<float>::quiet_NaN(), 0};
      looks[at] = {recv.as<float>(), count, n * static_cast<float>(round % 1000) + n * (n - 1) / 2, count};
      pkcommStreamEnqueue(self.stream, &Write::run, &writes[2 * at]);
      send.upload();
      if (!self.ok(
              pkcommAllReduce(send.at(), recv.at(), count, pkcommFloat32, pkcommSum, self.comm, self.stream),
              "call"))
        return;
      pkcommStreamEnqueue(self.stream, &Write::run, &writes[2 * at + 1]);
      send.upload();
      recv.download();
      pkcommStreamEnqueue(self.stream, &Look::run, &looks[at]);
    }
    if (!self.synchronize("rounds")) return;
    for (int i = 0; i < round - first; ++i) {
      const std::size_t wrong = looks[static_cast<std::size_t>(i)].wrong;
      if (!self.expect(wrong == 0, "round " + std::to_string(first + i) + ": " + std::to_string(wrong) +
                                       " wrong elements"))
        return;
    }
  }
}

/// 64 all_reduces queued at once, the k-th of the value k on every rank.
void queue_64_all_reduces(Rank& self, Place place, std::size_t count, int rounds) {
  constexpr std::size_t kQueued = 64;
  // Outputs of their own where that is no matter of gigabytes.
  const std::size_t outputs = count * 4 <= (64 << 10) ? kQueued : 1;
  Memory send(self, place, count * 4, 4), recv(self, place, outputs * count * 4, 4);
  std::vector<Write> writes(kQueued);
  std::vector<Look> looks(kQueued);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t k = 0; k < kQueued; ++k) {
      const std::size_t first = k % outputs * count;
      float* const to = recv.as<float>() + first;
      writes[k] = {send.as<float>(), count, static_cast<float>(k), 0};
      looks[k] = {to, count, static_cast<float>(k) * static_cast<float>(self.nranks), count};
      pkcommStreamEnqueue(self.stream, &Write::run, &writes[k]);
      send.upload();
      if (!self.ok(pkcommAllReduce(send.at(), recv.at(first * 4), count, pkcommFloat32, pkcommSum, self.comm,
                                   self.stream),
                   "call"))
        return;
      if (outputs > 1) continue;
      recv.download();
      pkcommStreamEnqueue(self.stream, &Look::run, &looks[k]);
    }
    recv.download();
    if (!self.synchronize("64 calls")) return;
    for (std::size_t k = 0; k < kQueued; ++k) {
      if (outputs != 1) Look::run(&looks[k]);
      if (!self.expect(looks[k].wrong == 0, "round " + std::to_string(round) + ", call " + std::to_string(k) +
                                                ": " + std::to_string(looks[k].wrong) + " wrong elements")) {
        return;
      }
    }
  }
}

}  // namespace

TEST_CASE("C16 a sum's bits depend neither on the size, nor on the algorithm, nor on the rank",
          "[integration][C16]") {
  const std::string algorithm = GENERATE(from_range(algorithms()));
  CAPTURE(algorithm);
  const Environment environment = forced(algorithm);
  run_world(4, [&](Rank& self) {
    const Place place = algorithm == "multimem_emulated" ? Place::kSymmetric : Place::kDevice;
    constexpr float kInputs[] = {16777216.0f, 1.0f, -16777216.0f, 1.0f};
    constexpr std::size_t kMost = 1048579 + 1000;
    Memory send(self, place, kMost * 4, 4), recv(self, place, kMost * 4, 4);
    std::fill_n(send.as<float>(), kMost, kInputs[self.rank]);
    send.upload();
    // In rank order: 2^24 + 1 is 2^24, less 2^24 is 0, and 1.
    const auto check = [&](std::size_t count, const std::string& what) {
      recv.download();
      if (!self.synchronize(what)) return;
      const float* const begin = recv.as<float>();
      const float* const wrong = std::find_if(begin, begin + count, [](float x) { return x != 1.0f; });
      self.expect(wrong == begin + count, what + ": element " + std::to_string(wrong - begin) + " is not 1");
    };
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1048579}, kMost}) {
      recv.fill(Memory::kPoison);
      const std::string what = "count " + std::to_string(count);
      self.ok(pkcommAllReduce(send.at(), recv.at(), count, pkcommFloat32, pkcommSum, self.comm, self.stream),
              what);
      check(count, what);
    }
    recv.fill(Memory::kPoison);
    self.ok(pkcommGroupStart(), "group");
    self.ok(pkcommAllReduce(send.at(), recv.at(), 1000, pkcommFloat32, pkcommSum, self.comm, self.stream),
            "first of two");
    self.ok(pkcommAllReduce(send.at(4000), recv.at(4000), 1048579, pkcommFloat32, pkcommSum, self.comm,
                            self.stream),
            "second of two");
    self.ok(pkcommGroupEnd(), "group");
    check(kMost, "two in a group");
  });
}

TEST_CASE("C31 (a) an input may be overwritten as soon as its all_reduce is over here",
          "[integration][C31]") {
  const int nranks = GENERATE(2, 4);
  CAPTURE(nranks);
  SECTION("as the dispatcher chooses") {
    run_world(nranks, [](Rank& self) {
      overwrite_behind_all_reduce(self, Place::kVisible, 16, 10000);
      overwrite_behind_all_reduce(self, Place::kVisible, 100003, 50);
    });
  }
  SECTION("between windows") {
    const std::string algorithm = GENERATE(from_range(between_windows()));
    CAPTURE(algorithm);
    const Environment environment = forced(algorithm);
    run_world(nranks, [](Rank& self) { overwrite_behind_all_reduce(self, Place::kSymmetric, 301, 2000); });
  }
  SECTION("through staging") {
    const std::string algorithm = GENERATE(from_range(through_staging()));
    CAPTURE(algorithm);
    const Environment environment = forced(algorithm);
    run_world(nranks, [](Rank& self) { overwrite_behind_all_reduce(self, Place::kVisible, 301, 2000); });
  }
}

TEST_CASE("C31 (b) collectives queued behind each other keep their generations apart", "[integration][C31]") {
  const int nranks = GENERATE(2, 4);
  CAPTURE(nranks);
  run_world(nranks, [](Rank& self) {
    queue_64_all_reduces(self, Place::kVisible, 2, 1000);
    queue_64_all_reduces(self, Place::kVisible, 16384, 8);
    queue_64_all_reduces(self, Place::kSymmetric, 16384, 8);
    queue_64_all_reduces(self, Place::kVisible, 2097152, 1);
  });
}

TEST_CASE("C31 (b) the same for 1,000 rounds of all sizes", "[integration][C31][.nightly]") {
  const int nranks = GENERATE(2, 4);
  CAPTURE(nranks);
  run_world(nranks, [](Rank& self) {
    queue_64_all_reduces(self, Place::kVisible, 16384, 1000);
    queue_64_all_reduces(self, Place::kSymmetric, 16384, 1000);
    queue_64_all_reduces(self, Place::kVisible, 2097152, 1000);
  });
}
