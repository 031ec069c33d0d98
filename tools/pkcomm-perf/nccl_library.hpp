// NCCL as a library that may or may not be on the machine: opened at run time, never linked. The
// declarations are our own, after NCCL's documented interface; values of types and operations are those of
// pkcomm, which took them over.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pkcomm/pkcomm.h"
#include "result.hpp"

namespace pkcomm::perf {

using NcclComm = struct ncclComm*;
using NcclWindow = struct ncclWindow*;
using NcclResult = int;
struct NcclUniqueId {
  char internal[128];
};

inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr NcclResult kNcclInvalidArgument = 4;  // among others, a type that this version does not know
inline constexpr NcclResult kNcclInvalidUsage = 5;
inline constexpr NcclResult kNcclInProgress = 7;
inline constexpr int kNcclSymmetricWindow = 1;  // NCCL_WIN_COLL_SYMMETRIC

/// The functions, by their names without the prefix. Those behind `optional` are null in versions that lack
/// them.
struct NcclFunctions {
  NcclResult (*GetVersion)(int*);
  NcclResult (*GetUniqueId)(NcclUniqueId*);
  NcclResult (*CommInitRank)(NcclComm*, int nranks, NcclUniqueId, int rank);
  NcclResult (*CommDestroy)(NcclComm);
  NcclResult (*CommAbort)(NcclComm);
  NcclResult (*CommGetAsyncError)(NcclComm, NcclResult*);
  const char* (*GetErrorString)(NcclResult);
  NcclResult (*GroupStart)();
  NcclResult (*GroupEnd)();
  NcclResult (*AllReduce)(const void*, void*, std::size_t, int type, int op, NcclComm, pkcommStream_t);
  NcclResult (*Reduce)(const void*, void*, std::size_t, int type, int op, int root, NcclComm, pkcommStream_t);
  NcclResult (*Broadcast)(const void*, void*, std::size_t, int type, int root, NcclComm, pkcommStream_t);
  NcclResult (*AllGather)(const void*, void*, std::size_t, int type, NcclComm, pkcommStream_t);
  NcclResult (*ReduceScatter)(const void*, void*, std::size_t, int type, int op, NcclComm, pkcommStream_t);
  NcclResult (*Send)(const void*, std::size_t, int type, int peer, NcclComm, pkcommStream_t);
  NcclResult (*Recv)(void*, std::size_t, int type, int peer, NcclComm, pkcommStream_t);
  // optional
  const char* (*GetLastError)(NcclComm);                                                        // 2.13
  NcclResult (*MemAlloc)(void**, std::size_t);                                                  // 2.19
  NcclResult (*MemFree)(void*);                                                                 // 2.19
  NcclResult (*CommWindowRegister)(NcclComm, void*, std::size_t, NcclWindow*, int flags);       // 2.27
  NcclResult (*CommWindowDeregister)(NcclComm, NcclWindow);                                     // 2.27
  NcclResult (*AlltoAll)(const void*, void*, std::size_t, int type, NcclComm, pkcommStream_t);  // 2.28
};

/// An opened NCCL; it stays open for the life of the process, as its threads may.
class NcclLibrary {
 public:
  /// `path`: a file, or empty for PKCOMM_PERF_NCCL, the loader's search, and the Python packages of the
  /// interpreters on PATH, in this order. The error names all that was tried.
  static Result<std::unique_ptr<NcclLibrary>> open(const std::string& path);

  const NcclFunctions* operator->() const { return &functions_; }
  const std::string& file() const { return file_; }
  int version() const { return version_; }  // 22809: 2.28.9
  bool has_windows() const {
    return functions_.MemAlloc != nullptr && functions_.CommWindowRegister != nullptr;
  }

  /// An outcome with the call's name and NCCL's own words.
  Outcome check(NcclResult result, const char* call, NcclComm comm = nullptr) const;

 private:
  NcclLibrary() = default;

  NcclFunctions functions_{};
  std::string file_;
  int version_ = 0;
};

/// Where Python's wheel of NCCL may lie beside the interpreters of `search_path` (the form of PATH).
std::vector<std::string> nccl_in_python_packages(const std::string& search_path);

/// "2.28.9" of 22809.
std::string nccl_version_in_words(int version);

}  // namespace pkcomm::perf
