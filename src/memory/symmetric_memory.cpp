// Growing: each process makes its ranks' chunks, all exchange the descriptors, everybody maps, and nobody goes on before all
// have. What fails anywhere is undone everywhere.
#include "memory/symmetric_memory.hpp"

#include <algorithm>
#include <string>

namespace pkcomm {

/// The mappings of a chunk that may still fail: undone unless it is kept.
class SymmetricMemory::NewChunk {
 public:
  NewChunk(SymmetricMemory& memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}
  NewChunk(const NewChunk&) = delete;
  NewChunk& operator=(const NewChunk&) = delete;
  ~NewChunk() {
    for (const int rank : mapped_) memory_.platform_.unmap(memory_.end_of(rank), bytes_);
  }

  /// This process's memory for one of its ranks, all zero.
  Result<bootstrap::UniqueFd> create(int rank) {
    const int device = memory_.devices_[static_cast<std::size_t>(rank)];
    PK_ASSIGN(const int made, memory_.platform_.create_memory(device, bytes_));
    bootstrap::UniqueFd descriptor(made);
    PK_TRY(map(rank, descriptor.get()));
    PK_TRY(memory_.platform_.clear(device, memory_.end_of(rank), bytes_));
    return descriptor;
  }
  Status map(int rank, int descriptor) {
    PK_TRY(memory_.platform_.map(descriptor, bytes_, memory_.end_of(rank), memory_.local_devices_));
    mapped_.push_back(rank);
    return {};
  }
  void keep() {
    memory_.chunks_.push_back(bytes_);
    memory_.mapped_ += bytes_;
    mapped_.clear();
  }

 private:
  SymmetricMemory& memory_;
  const std::uint64_t bytes_;
  std::vector<int> mapped_;
};

SymmetricMemory::SymmetricMemory(bootstrap::Membership& membership, Platform& platform,
                                 std::vector<int> devices, std::byte* base, std::uint64_t stride)
    : membership_(membership),
      platform_(platform),
      devices_(std::move(devices)),
      ranks_(static_cast<std::size_t>(membership.processes())),
      base_(base),
      stride_(stride) {
  for (int rank = 0; rank < membership.nranks(); ++rank) {
    const int process = membership.ranks()[static_cast<std::size_t>(rank)].process;
    ranks_[static_cast<std::size_t>(process)].push_back(rank);
    if (process == membership.process()) local_devices_.push_back(devices_[static_cast<std::size_t>(rank)]);
  }
  std::sort(local_devices_.begin(), local_devices_.end());
  local_devices_.erase(std::unique(local_devices_.begin(), local_devices_.end()), local_devices_.end());
  for (const auto& ranks : ranks_) most_ranks_ = std::max(most_ranks_, ranks.size());
}

Result<std::unique_ptr<SymmetricMemory>> SymmetricMemory::reserve(bootstrap::Membership& membership,
                                                                  Platform& platform,
                                                                  std::vector<int> devices,
                                                                  std::uint64_t stride) {
  auto base = platform.reserve(static_cast<std::uint64_t>(membership.nranks()) * stride);
  if (!base.ok()) {
    return Status(base.status().code(), base.status().message() + ": " + std::to_string(membership.nranks()) +
                                            " ranks of " + std::to_string(stride) +
                                            " bytes, for the most part PKCOMM_HEAP_SIZE");
  }
  return std::unique_ptr<SymmetricMemory>(
      new SymmetricMemory(membership, platform, std::move(devices), base.value(), stride));
}

SymmetricMemory::~SymmetricMemory() {
  for (int rank = 0; rank < membership_.nranks(); ++rank) {
    std::byte* at = base_ + static_cast<std::uint64_t>(rank) * stride_;
    for (const std::uint64_t bytes : chunks_) {
      platform_.unmap(at, bytes);
      at += bytes;
    }
  }
  platform_.release(base_, static_cast<std::uint64_t>(membership_.nranks()) * stride_);
}

Status SymmetricMemory::grow(int rank, std::uint64_t bytes, const char* what, bootstrap::Deadline deadline) {
  return membership_.together(rank, what, deadline, [&](bootstrap::Mesh& mesh) -> Status {
    NewChunk chunk(*this, bytes);
    Status status;
    std::vector<bootstrap::UniqueFd> own;
    for (const int local : membership_.local_ranks()) {
      auto descriptor = chunk.create(local);
      if (!descriptor.ok()) {
        status = std::move(descriptor).status();
        break;
      }
      own.push_back(std::move(descriptor).value());
    }

    // A round for each rank of the process that has the most; who has failed says so in the next exchange.
    std::vector<bootstrap::Mesh::Message> all;
    for (std::size_t round = 0; round < most_ranks_; ++round) {
      if (!status.ok()) return mesh.refuse(what, status, deadline);
      PK_TRY(mesh.exchange(what, {}, round < own.size() ? own[round].get() : -1, all, deadline));
      for (int process = 0; process < membership_.processes() && status.ok(); ++process) {
        const auto& ranks = ranks_[static_cast<std::size_t>(process)];
        if (process == membership_.process() || round >= ranks.size()) continue;
        const auto& message = all[static_cast<std::size_t>(process)];
        status = message.fd ? chunk.map(ranks[round], message.fd.get())
                            : Status(pkcommInternalError, mesh.name_of(process) + " sent no descriptor");
      }
    }
    if (!status.ok()) return mesh.refuse(what, status, deadline);
    PK_TRY(mesh.exchange(what, {}, -1, all, deadline));
    chunk.keep();
    return {};
  });
}

}  // namespace pkcomm
