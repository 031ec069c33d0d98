// The order of the search is that of how much somebody meant it: a flag, a variable, the system's loader, a
// wheel.
#include "nccl_library.hpp"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <sstream>

namespace pkcomm::perf {

namespace {

std::string file_of(void* symbol, const std::string& otherwise) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : otherwise;
}

std::vector<std::string> candidates(const std::string& path) {
  if (!path.empty()) return {path};
  if (const char* variable = std::getenv("PKCOMM_PERF_NCCL"); variable != nullptr && *variable != '\0') {
    return {variable};
  }
  std::vector<std::string> names = {"libnccl.so.2"};
  const char* search_path = std::getenv("PATH");
  const std::vector<std::string> wheels = nccl_in_python_packages(search_path != nullptr ? search_path : "");
  names.insert(names.end(), wheels.begin(), wheels.end());
  return names;
}

template <class Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The name of the first function that is missing, or null.
const char* load_all(void* library, NcclFunctions& f) {
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto& function) {
    if (!load(library, name, function) && missing == nullptr) missing = name;
  };
  need("ncclGetVersion", f.GetVersion);
  need("ncclGetUniqueId", f.GetUniqueId);
  need("ncclCommInitRank", f.CommInitRank);
  need("ncclCommDestroy", f.CommDestroy);
  need("ncclCommAbort", f.CommAbort);
  need("ncclCommGetAsyncError", f.CommGetAsyncError);
  need("ncclGetErrorString", f.GetErrorString);
  need("ncclGroupStart", f.GroupStart);
  need("ncclGroupEnd", f.GroupEnd);
  need("ncclAllReduce", f.AllReduce);
  need("ncclReduce", f.Reduce);
  need("ncclBroadcast", f.Broadcast);
  need("ncclAllGather", f.AllGather);
  need("ncclReduceScatter", f.ReduceScatter);
  need("ncclSend", f.Send);
  need("ncclRecv", f.Recv);
  load(library, "ncclGetLastError", f.GetLastError);
  load(library, "ncclMemAlloc", f.MemAlloc);
  load(library, "ncclMemFree", f.MemFree);
  load(library, "ncclCommWindowRegister", f.CommWindowRegister);
  load(library, "ncclCommWindowDeregister", f.CommWindowDeregister);
  load(library, "ncclAlltoAll", f.AlltoAll);
  return missing;
}

}  // namespace

Result<std::unique_ptr<NcclLibrary>> NcclLibrary::open(const std::string& path) {
  std::string tried;
  for (const std::string& name : candidates(path)) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* reason = dlerror();
      tried += (tried.empty() ? "" : "; ") + (reason != nullptr ? std::string(reason) : name);
      continue;
    }
    std::unique_ptr<NcclLibrary> nccl(new NcclLibrary);
    if (const char* missing = load_all(library, nccl->functions_); missing != nullptr) {
      return Error{name + " is no NCCL that can be measured: it lacks " + missing};
    }
    nccl->file_ = file_of(reinterpret_cast<void*>(nccl->functions_.AllReduce), name);
    PERF_TRY(nccl->check(nccl->functions_.GetVersion(&nccl->version_), "ncclGetVersion"));
    return nccl;
  }
  return Error{"NCCL was not found (--nccl-lib or PKCOMM_PERF_NCCL names its file): " + tried};
}

Outcome NcclLibrary::check(NcclResult result, const char* call, NcclComm comm) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return {};
  std::string text = std::string(call) + ": " + functions_.GetErrorString(result);
  if (functions_.GetLastError != nullptr) {
    const char* detail = functions_.GetLastError(comm);
    if (detail != nullptr && *detail != '\0') text += std::string(": ") + detail;
  }
  return Error{std::move(text)};
}

std::vector<std::string> nccl_in_python_packages(const std::string& search_path) {
  std::vector<std::string> files;
  std::istringstream directories(search_path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const std::string pattern =
          directory + "/../lib/python3*/" + packages + "/nvidia/nccl/lib/libnccl.so.2";
      glob_t found{};
      if (!directory.empty() && glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
      }
      globfree(&found);
    }
  }
  return files;
}

std::string nccl_version_in_words(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace pkcomm::perf
