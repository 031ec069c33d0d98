// The collectives that move blocks: every algorithm, several shapes, against the definition of each.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "support/memory.hpp"

using namespace pkcomm::test;

namespace {

/// Byte k of the block that goes from one rank to another: different for every pair and position.
std::byte payload(int from, int to, std::size_t k) {
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(from) * 131 + static_cast<std::uint64_t>(to) * 31 + k) * 2654435761u;
  return static_cast<std::byte>(mixed >> 13);
}

enum class Kind { kBroadcast, kAllGather, kAllToAll, kGather, kScatter };
constexpr Kind kKinds[] = {Kind::kBroadcast, Kind::kAllGather, Kind::kAllToAll, Kind::kGather,
                           Kind::kScatter};

bool blocks_in_send(Kind kind) { return kind == Kind::kAllToAll || kind == Kind::kScatter; }
bool blocks_in_recv(Kind kind) {
  return kind == Kind::kAllGather || kind == Kind::kAllToAll || kind == Kind::kGather;
}

/// What rank `to` gets from rank `from`: blocks that all get alike carry 0 for `to`.
int addressee(Kind kind, int to) { return blocks_in_send(kind) ? to : 0; }

void check_call(Rank& self, Kind kind, std::size_t count, bool in_place, const BufferPair& buffers) {
  const int root = static_cast<int>(count % static_cast<std::size_t>(self.nranks));
  const bool is_root = self.rank == root;
  const auto n = static_cast<std::size_t>(self.nranks), me = static_cast<std::size_t>(self.rank);
  const std::size_t send_bytes = count * (blocks_in_send(kind) ? n : 1),
                    recv_bytes = count * (blocks_in_recv(kind) ? n : 1);
  const bool sends = is_root || (kind != Kind::kBroadcast && kind != Kind::kScatter);
  const bool receives = is_root || kind != Kind::kGather;
  if (in_place && (kind == Kind::kAllToAll || !sends || !receives)) in_place = false;

  Memory send_memory = buffers.first(self, send_bytes, 1), recv_memory = buffers.second(self, recv_bytes, 1);
  Memory *from = &send_memory, *to = &recv_memory;
  std::size_t from_byte = 0, to_byte = 0;
  if (in_place && (kind == Kind::kAllGather || kind == Kind::kGather)) from = to, from_byte = me * count;
  if (in_place && kind == Kind::kScatter) to = from, to_byte = me * count;
  if (in_place && kind == Kind::kBroadcast) to = from;
  std::byte* const send = from->host() + from_byte;
  std::byte* const recv = to->host() + to_byte;
  for (int block = 0; sends && block < (blocks_in_send(kind) ? self.nranks : 1); ++block) {
    for (std::size_t k = 0; k < count; ++k)
      send[static_cast<std::size_t>(block) * count + k] = payload(self.rank, block, k);
  }
  from->upload();
  // A root's window must lie at the offset that the others give; its own is not compared where it is in place.
  pkcommResult_t result = pkcommSuccess;
  const void* const input = sends ? from->at(from_byte) : nullptr;
  void* const output = receives ? to->at(to_byte) : nullptr;
  switch (kind) {
    case Kind::kBroadcast:
      result = pkcommBroadcast(input, output, count, pkcommUint8, root, self.comm, self.stream);
      break;
    case Kind::kAllGather:
      result = pkcommAllGather(input, output, count, pkcommUint8, self.comm, self.stream);
      break;
    case Kind::kAllToAll:
      result = pkcommAllToAll(input, output, count, pkcommUint8, self.comm, self.stream);
      break;
    case Kind::kGather:
      result = pkcommGather(input, output, count, pkcommUint8, root, self.comm, self.stream);
      break;
    case Kind::kScatter:
      result = pkcommScatter(input, output, count, pkcommUint8, root, self.comm, self.stream);
      break;
  }
  std::ostringstream what;
  what << "kind " << static_cast<int>(kind) << " nranks " << self.nranks << " count " << count
       << (in_place ? " in place" : "") << buffers.name();
  if (!self.ok(result, what.str())) return;
  send_memory.download();
  recv_memory.download();
  if (!self.synchronize(what.str())) return;
  for (int block = 0; receives && block < (blocks_in_recv(kind) ? self.nranks : 1); ++block) {
    const int sender = kind == Kind::kBroadcast || kind == Kind::kScatter ? root : block;
    for (std::size_t k = 0; k < count; ++k) {
      if (recv[static_cast<std::size_t>(block) * count + k] !=
          payload(sender, addressee(kind, self.rank), k)) {
        self.fail(what.str() + ": byte " + std::to_string(k) + " from rank " + std::to_string(sender) +
                  " is wrong");
        return;
      }
    }
  }
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
  const std::size_t most = *std::max_element(counts.begin(), counts.end()) * static_cast<std::size_t>(nranks);
  run_world(nranks, [&](Rank& self) {
    for (const BufferPair& buffers : BufferPair::all(self, most)) {
      for (const Kind kind : kKinds) {
        for (const std::size_t count : counts) {
          check_call(self, kind, count, false, buffers);
          // In place on windows every rank gives the same offsets, as the root's buffers are nobody's business.
          if (!buffers.symmetric() || kind == Kind::kAllGather) check_call(self, kind, count, true, buffers);
        }
      }
    }
  });
}

}  // namespace

TEST_CASE("blocks arrive where they belong: the dispatcher's choice", "[conformance]") {
  check_all("^multimem_emulated", GENERATE(1, 2, 3, 7), {1, 8, 1000, 16385, 300001});
}
TEST_CASE("blocks arrive where they belong: one_shot_ll", "[conformance]") {
  check_all("one_shot_ll", GENERATE(1, 2, 3, 5), {1, 7, 8, 9, 4097});
}
TEST_CASE("blocks arrive where they belong: two_shot_ll", "[conformance]") {
  check_all("two_shot_ll", GENERATE(2, 3, 7), {1, 65, 4097});
}
TEST_CASE("blocks arrive where they belong: direct_ldst", "[conformance]") {
  check_all("direct_ldst", GENERATE(1, 2, 3, 5), {1, 63, 64, 65, 70001});
}
TEST_CASE("blocks arrive where they belong: direct_tma", "[conformance]") {
  check_all("direct_tma", GENERATE(2, 3), {1, 70001});
}
TEST_CASE("blocks arrive where they belong: copy_engine", "[conformance]") {
  check_all("copy_engine", GENERATE(2, 3), {1, 70001});
}
TEST_CASE("blocks arrive where they belong: multimem_emulated", "[conformance]") {
  check_all("multimem_emulated", GENERATE(2, 3), {1, 4097});
}
TEST_CASE("blocks arrive with late stores, many rounds and several CTAs", "[conformance]") {
  const std::string algorithm =
      GENERATE("one_shot_ll", "two_shot_ll", "direct_ldst", "direct_tma", "copy_engine");
  check_all(algorithm, 4, {1, 200, 20001},
            {{"PKCOMM_HOST_SEED", "11"},
             {"PKCOMM_CHUNK", "4K"},
             {"PKCOMM_STAGING", "1M"},
             {"PKCOMM_MIN_CTAS", "3"},
             {"PKCOMM_MAX_CTAS", "3"}});
}
TEST_CASE("many ranks of one process get their blocks", "[conformance]") {
  // A small heap: ThreadSanitizer leaves little address space.
  const int nranks = GENERATE(16, 72);
  if (fits_devices(nranks)) check_all("^multimem_emulated", nranks, {1, 129}, {{"PKCOMM_HEAP_SIZE", "64M"}});
}
