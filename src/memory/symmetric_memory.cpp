// Mapping of the parts: each process makes one descriptor for its ranks, all processes exchange them, everybody maps.
#include "memory/symmetric_memory.hpp"

#include <string>

namespace pkcomm {

Result<std::unique_ptr<SymmetricMemory>> SymmetricMemory::reserve(bootstrap::Membership& membership,
                                                                  Platform& platform, std::uint64_t stride) {
  auto base = platform.reserve(static_cast<std::uint64_t>(membership.nranks()) * stride);
  if (!base.ok()) {
    return Status(base.status().code(), base.status().message() + ": " + std::to_string(membership.nranks()) +
                                            " ranks of " + std::to_string(stride) +
                                            " bytes, for the most part PKCOMM_HEAP_SIZE");
  }
  return std::unique_ptr<SymmetricMemory>(new SymmetricMemory(membership, platform, base.value(), stride));
}

SymmetricMemory::~SymmetricMemory() {
  platform_.release(base_, static_cast<std::uint64_t>(membership_.nranks()) * stride_);
}

Status SymmetricMemory::map_process(int process, int descriptor, std::uint64_t bytes) {
  std::uint64_t offset = 0;
  for (int rank = 0; rank < membership_.nranks(); ++rank) {
    if (membership_.ranks()[static_cast<std::size_t>(rank)].process != process) continue;
    PK_TRY(platform_.map(descriptor, offset, bytes,
                         base_ + static_cast<std::uint64_t>(rank) * stride_ + mapped_));
    offset += bytes;
  }
  return {};
}

Status SymmetricMemory::grow(int rank, std::uint64_t bytes, const char* what, bootstrap::Deadline deadline) {
  return membership_.together(rank, what, deadline, [&](bootstrap::Mesh& mesh) -> Status {
    const std::uint64_t local = membership_.local_ranks().size();
    auto created = platform_.create_memory(local * bytes);
    if (!created.ok()) return mesh.refuse(what, created.status(), deadline);
    const bootstrap::UniqueFd own(created.value());
    Status mapped = map_process(membership_.process(), own.get(), bytes);
    if (!mapped.ok()) return mesh.refuse(what, mapped, deadline);

    std::vector<bootstrap::Mesh::Message> all;
    PK_TRY(mesh.exchange(what, {}, own.get(), all, deadline));
    for (int process = 0; process < membership_.processes() && mapped.ok(); ++process) {
      const auto& message = all[static_cast<std::size_t>(process)];
      if (process == membership_.process()) continue;
      mapped = message.fd ? map_process(process, message.fd.get(), bytes)
                          : Status(pkcommInternalError, mesh.name_of(process) + " sent no descriptor");
    }
    // Nobody goes on before everybody has mapped everything.
    if (!mapped.ok()) return mesh.refuse(what, mapped, deadline);
    PK_TRY(mesh.exchange(what, {}, -1, all, deadline));
    mapped_ += bytes;
    return {};
  });
}

}  // namespace pkcomm
