// Measures one row on one rank: times the operation out of place and in place, and checks what it did. All
// ranks run the same code in step; rank 0 gets the row.
#pragma once

#include <optional>
#include <vector>

#include "backend.hpp"
#include "buffers.hpp"
#include "row.hpp"
#include "subject.hpp"

namespace pkcomm::perf {

class Bench {
 public:
  /// Allocates buffers for the greatest size, of each backend its own. `backends`: one, or pkcomm and then
  /// NCCL. All arguments outlive the bench. Collective.
  static Result<Bench> make(const Context& context, const Collective& collective,
                            const std::vector<Backend*>& backends);

  /// The row; on ranks other than 0 without figures. Empty where there is no row to show: the forced
  /// algorithm is not legal for it, or the first backend does not support it (`*unsupported` then holds its
  /// words, as it does where the second one does not).
  Result<std::optional<Row>> measure(const Subject& subject, std::string* unsupported);

 private:
  struct Contender {
    Backend* backend;
    Buffer send, recv;
  };

  Bench(const Context& context, const Collective& collective) : context_(context), collective_(collective) {}

  Result<bool> explain(const Subject& subject, Row& row) const;
  Result<std::optional<Half>> measure_half(const Subject& subject, bool in_place, std::string* unsupported);

  const Context& context_;
  const Collective& collective_;
  std::vector<Contender> contenders_;
  std::uint64_t seed_ = 0;  // counts fillings, alike on all ranks
};

}  // namespace pkcomm::perf
