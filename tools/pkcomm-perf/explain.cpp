// The words are the library's own; this file only asks once for each row of the sweep.
#include "explain.hpp"

#include <cstdio>
#include <vector>

#include "collectives.hpp"
#include "supervisor.hpp"

namespace pkcomm::perf {

namespace {

Outcome explain_row(const Options& options, const Collective& collective, pkcommDataType_t type, Op op,
                    int nranks, const Shape& shape) {
  pkcommExplainRequest_t request = PKCOMM_EXPLAIN_REQUEST_INITIALIZER;
  request.collective = static_cast<pkcommCollective_t>(collective.explained_as);
  request.count = shape.count;
  request.dtype = type;
  request.op =
      op == Op::kMulSum ? static_cast<pkcommRedOp_t>(PKCOMM_BUILTIN_OPS) : static_cast<pkcommRedOp_t>(op);
  request.nranks = nranks;
  request.send_window = request.recv_window = options.memory == Memory::kHeap ? 1 : 0;
  request.topology = options.topology.empty() ? nullptr : options.topology.c_str();
  std::vector<char> text(32768);
  PERF_TRY(check(pkcommExplain(&request, nullptr, nullptr, text.data(), text.size()), "pkcommExplain"));
  std::printf("# %.*s, %zu bytes, %d ranks, %s\n%s\n", static_cast<int>(collective.name.size()),
              collective.name.data(), shape.sized * describe(type).bytes, nranks,
              options.memory == Memory::kHeap ? "symmetric heap" : "ordinary memory", text.data());
  return {};
}

Outcome explain_all(const Options& options, int nranks) {
  for (const CollectiveId id : options.collectives) {
    const Collective& collective = describe(id);
    if (collective.explained_as < 0) {
      std::printf("# %.*s: one-sided, the dispatcher has no say\n\n",
                  static_cast<int>(collective.name.size()), collective.name.data());
      continue;
    }
    const std::size_t types = collective.has_data ? options.types.size() : 1;
    const std::size_t ops = collective.reduces ? options.ops.size() : 1;
    for (std::size_t t = 0; t < types; ++t) {
      for (std::size_t o = 0; o < ops; ++o) {
        std::optional<std::size_t> last_count;
        for (std::optional<std::size_t> size = options.sizes.least; size; size = options.sizes.after(*size)) {
          const Shape shape = collective.shape(*size / describe(options.types[t]).bytes, nranks);
          if (last_count == shape.count) continue;
          last_count = shape.count;
          PERF_TRY(explain_row(options, collective, options.types[t], options.ops[o], nranks, shape));
        }
      }
    }
  }
  return {};
}

}  // namespace

int explain(const Options& options, int nranks) {
  const Outcome outcome = explain_all(options, nranks);
  if (outcome.ok()) return 0;
  std::fprintf(stderr, "pkcomm-perf: %s\n", outcome.error().text.c_str());
  return kExitFailed;
}

}  // namespace pkcomm::perf
