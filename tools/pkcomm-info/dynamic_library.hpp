// A vendor's library, opened at run time: this program starts where there is none.
#pragma once

#include <dlfcn.h>

#include <string>
#include <utility>

namespace pkcomm::info {

class DynamicLibrary {
 public:
  explicit DynamicLibrary(const char* name) : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* const why = ::dlerror();
    failure_ = why == nullptr ? std::string(name) + " cannot be opened" : why;
  }
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  // Never closed: a driver may have threads of its own by now.
  ~DynamicLibrary() = default;

  /// Why it could not be opened, or the first function that it must have and has not; empty: all is well.
  const std::string& failure() const { return failure_; }

  /// A function that there must be.
  template <class Function>
  void need(Function*& function, const char* name) {
    if (find(function, name) || !failure_.empty()) return;
    failure_ = std::string("the library lacks ") + name;
  }
  /// A function that older ones may lack: null then.
  template <class Function>
  bool find(Function*& function, const char* name) {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  void* handle_;
  std::string failure_;
};

}  // namespace pkcomm::info
