// The operations that can be measured: one table, a row each, with what the rest of the tool needs to know of
// it. The meaning of "size" and "count" is that of nccl-tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective_id.hpp"
#include "pkcomm/pkcomm.h"
#include "result.hpp"
#include "segments.hpp"

namespace pkcomm::perf {

/// Elements of one call.
struct Shape {
  std::size_t count = 0;  // as given to the library: the column "count"
  std::size_t send = 0;   // the input's extent
  std::size_t recv = 0;   // the output's extent
  std::size_t sized = 0;  // what the column "size" counts
};

/// Which rank, of how many, with which root.
struct Seat {
  int rank = 0;
  int nranks = 1;
  int root = 0;
};

/// Where input and output begin within the one buffer of an in-place call, in elements.
struct InPlace {
  std::size_t send_at = 0;
  std::size_t recv_at = 0;
};

/// Everything that a call needs, made once for a row.
struct Call {
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  std::size_t element = 1;  // bytes
  pkcommDataType_t type = pkcommFloat32;
  pkcommRedOp_t op = pkcommSum;
  Seat seat;
  std::vector<std::size_t> send_counts, recv_counts, displacements;  // all_to_all_v
  pkcommComm_t comm = nullptr;
  pkcommStream_t stream = nullptr;
};

struct Collective {
  CollectiveId id;
  std::string_view name;
  std::string_view alias;  // of nccl-tests, or empty
  bool reduces;            // combines elements: operations matter
  bool rooted;
  bool in_place;     // defined in place
  bool has_data;     // has a size, a type and buffers
  bool into_heap;    // the output must be symmetric memory
  bool grouped;      // may be repeated within a group (-m)
  int explained_as;  // a pkcommCollective_t, or -1

  /// For a size of `elements` elements, rounded down to what the ranks can share evenly.
  Shape (*shape)(std::size_t elements, int nranks);
  /// What must lie behind the output pointer afterwards; stretches not named stay as they were.
  void (*outputs)(std::size_t count, const Seat& seat, std::vector<Segment>& out);
  InPlace (*place)(std::size_t count, const Seat& seat);
  pkcommResult_t (*run)(const Call& call);
};

std::span<const Collective> collectives();
const Collective& describe(CollectiveId id);

/// `text`: names separated by commas, with or without nccl-tests' "_perf", or "all".
Result<std::vector<CollectiveId>> find_collectives(std::string_view text);

/// Elements that rank `from` sends to rank `to` in all_to_all_v, where the largest block has `block`.
std::size_t pair_count(std::size_t block, int from, int to);

/// Fills the arrays of an all_to_all_v.
void set_pair_counts(Call& call);

}  // namespace pkcomm::perf
