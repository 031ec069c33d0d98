// all_reduce, reduce and reduce_scatter: every algorithm, type and operation against the fold that the header promises,
// for values that make the result exact in every type.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "support/elements.hpp"
#include "support/memory.hpp"

using namespace pkcomm::test;

namespace {

struct Shape {
  pkcommDataType_t type;
  pkcommRedOp_t op;
  int nranks;
};

/// The value of element i of rank r; its fold is exact in every type, whatever the number of ranks up to 8.
std::uint64_t input(const Shape& shape, int rank, std::size_t i) {
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(shape.nranks);
  const bool chosen = i % n == r;
  switch (shape.op) {
    case pkcommProd:
      return chosen || (i + 1) % n == r ? 2 : 1;
    case pkcommMax:
    case pkcommMin:
      return is_fp8(shape.type) ? (i * 3 + r * 5) % 8 : (i * 3 + r * 5) % 101;
    case pkcommAvg:
      return (is_fp8(shape.type) ? 0 : i % 5) + (chosen ? n : 0);
    default:
      return is_fp8(shape.type) ? (i + r) % 2 : (i * 3 + r * 5) % 11;
  }
}

std::uint64_t expected(const Shape& shape, std::size_t i) {
  std::uint64_t result = input(shape, 0, i);
  for (int rank = 1; rank < shape.nranks; ++rank) {
    const std::uint64_t x = input(shape, rank, i);
    switch (shape.op) {
      case pkcommProd:
        result *= x;
        break;
      case pkcommMax:
        result = std::max(result, x);
        break;
      case pkcommMin:
        result = std::min(result, x);
        break;
      default:
        result += x;
    }
  }
  return shape.op == pkcommAvg ? result / static_cast<std::uint64_t>(shape.nranks) : result;
}

void fill_input(const Shape& shape, int rank, std::size_t first, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    store(to + i * bytes_of(shape.type), shape.type, input(shape, rank, first + i));
  }
}
void fill_expected(const Shape& shape, std::size_t first, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i)
    store(to + i * bytes_of(shape.type), shape.type, expected(shape, first + i));
}

enum class Kind { kAllReduce, kReduce, kReduceScatter };

/// One call on one rank, in or out of place.
void check_call(Rank& self, Kind kind, const Shape& shape, std::size_t count, bool in_place,
                const BufferPair& buffers) {
  const std::size_t element = bytes_of(shape.type);
  const auto blocks = kind == Kind::kReduceScatter ? static_cast<std::size_t>(self.nranks) : 1;
  const std::size_t mine = kind == Kind::kReduceScatter ? static_cast<std::size_t>(self.rank) * count : 0;
  const int root = static_cast<int>(count % static_cast<std::size_t>(self.nranks));
  const bool receives = kind != Kind::kReduce || self.rank == root;
  Memory send_memory = buffers.first(self, count * blocks * element, element),
         recv_memory = buffers.second(self, count * element, element);
  void* const send = send_memory.at();
  void* const recv = in_place ? send_memory.at(mine * element) : recv_memory.at();
  fill_input(shape, self.rank, 0, count * blocks, send_memory.host());
  send_memory.upload();
  const std::vector<std::byte> before(send_memory.host(), send_memory.host() + send_memory.size());
  // Peers may not write into a buffer before this rank has entered the call, so filling it needs no barrier.
  pkcommResult_t result = pkcommSuccess;
  switch (kind) {
    case Kind::kAllReduce:
      result = pkcommAllReduce(send, recv, count, shape.type, shape.op, self.comm, self.stream);
      break;
    case Kind::kReduce:
      result = pkcommReduce(send, receives ? recv : nullptr, count, shape.type, shape.op, root, self.comm,
                            self.stream);
      break;
    case Kind::kReduceScatter:
      result = pkcommReduceScatter(send, recv, count, shape.type, shape.op, self.comm, self.stream);
  }
  std::ostringstream what;
  what << "kind " << static_cast<int>(kind) << " type " << shape.type << " op " << shape.op << " nranks "
       << shape.nranks << " count " << count << (in_place ? " in place" : "") << buffers.name();
  if (!self.ok(result, what.str())) return;
  send_memory.download();
  recv_memory.download();
  if (!self.synchronize(what.str())) return;
  if (receives) {
    std::vector<std::byte> wanted(count * element);
    fill_expected(shape, mine, count, wanted.data());
    const std::byte* const got = in_place ? send_memory.host() + mine * element : recv_memory.host();
    const auto wrong = first_difference(got, wanted.data(), count, element);
    self.expect(wrong < 0, what.str() + ": element " + std::to_string(wrong) + " is wrong");
  }
  if (!in_place)
    self.expect(std::memcmp(before.data(), send_memory.host(), before.size()) == 0,
                what.str() + ": the input changed");
  self.expect(send_memory.guards_intact() && recv_memory.guards_intact(),
              what.str() + ": a guard was overwritten");
}

void check_all(const std::string& algorithm, int nranks, const std::vector<std::size_t>& counts,
               const std::map<std::string, std::string>& more = {}) {
  if (!can_force(algorithm)) return;
  auto variables = more;
  variables["PKCOMM_ALGORITHM"] = algorithm;
  const Environment environment(variables);
  CAPTURE(algorithm, nranks);
  const std::size_t most =
      *std::max_element(counts.begin(), counts.end()) * static_cast<std::size_t>(nranks) * 8;
  run_world(nranks, [&](Rank& self) {
    const std::vector<BufferPair> pairs = BufferPair::all(self, most);
    for (const pkcommDataType_t type : kTypes) {
      for (const pkcommRedOp_t op : kOps) {
        for (const std::size_t count : counts) {
          for (const Kind kind : {Kind::kAllReduce, Kind::kReduce, Kind::kReduceScatter}) {
            for (const bool in_place : {false, true}) {
              for (const BufferPair& buffers : pairs)
                check_call(self, kind, {type, op, nranks}, count, in_place, buffers);
            }
          }
        }
      }
    }
  });
}

}  // namespace

TEST_CASE("reductions equal the fold in rank order: the dispatcher's choice", "[conformance]") {
  check_all("^multimem_emulated", GENERATE(1, 2, 3, 8), {1, 7, 130, 1025});
}
TEST_CASE("reductions equal the fold in rank order: one_shot_ll", "[conformance]") {
  check_all("one_shot_ll", GENERATE(2, 3, 5), {1, 127, 1024});
}
TEST_CASE("reductions equal the fold in rank order: two_shot_ll", "[conformance]") {
  check_all("two_shot_ll", GENERATE(2, 3, 8), {1, 127, 1024});
}
TEST_CASE("reductions equal the fold in rank order: direct_ldst", "[conformance]") {
  check_all("direct_ldst", GENERATE(1, 2, 5), {1, 127, 2049});
}
TEST_CASE("reductions equal the fold in rank order: direct_tma", "[conformance]") {
  check_all("direct_tma", GENERATE(2, 3), {1, 2049});
}
TEST_CASE("reductions equal the fold in rank order: copy_engine", "[conformance]") {
  check_all("copy_engine", GENERATE(2, 3), {1, 2049});
}
TEST_CASE("reductions equal the fold in rank order: multimem_emulated", "[conformance]") {
  check_all("multimem_emulated", GENERATE(2, 3), {1, 129});
}
TEST_CASE("reductions with late stores, many rounds and several CTAs", "[conformance]") {
  const std::string algorithm = GENERATE("one_shot_ll", "two_shot_ll", "direct_ldst", "direct_tma");
  check_all(algorithm, 3, {1, 3001},
            {{"PKCOMM_HOST_SEED", "7"},
             {"PKCOMM_CHUNK", "4K"},
             {"PKCOMM_STAGING", "1M"},
             {"PKCOMM_MIN_CTAS", "3"},
             {"PKCOMM_MAX_CTAS", "3"}});
}
