// SPDX-License-Identifier: Apache-2.0
#include "device/backend.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/folder.hpp"

namespace zs::device::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libzs-cuda.so";

void* library = nullptr;
const Backend* table = nullptr;

std::string open() {
  const std::string path = library_path();
  if (path.empty())
    return std::string("there is no ") + kName +
           " next to the program: build zs with nvcc and a LibTorch with CUDA (make deps CUDA=1)";
  // Its LibTorch registers itself with the one that is here, and it uses the program's own functions.
  library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) return ::dlerror();
  table = function<const Backend*()>("zs_cuda_backend")();
  return "";
}

}  // namespace

bool driver_is_there() { return fs::exists("/dev/nvidiactl") || fs::exists("/dev/nvidia0"); }

// Next to the engine, or next to the folder of benches.
std::string library_path() {
  std::error_code failure;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failure).parent_path();
  for (const fs::path& path : {folder / kName, folder.parent_path() / kName}) {
    if (is_there(path)) return path.string();
  }
  return "";
}

std::string load() {
  static const std::string answer = open();
  return answer;
}

bool loaded() { return table != nullptr; }

const Backend& backend() {
  if (!table) throw Error("a GPU's memory was asked for, and no GPU is in use");
  return *table;
}

void* symbol(const char* name) {
  void* const found = library ? ::dlsym(library, name) : nullptr;
  if (!found) throw Error(std::string(kName) + ": has no " + name + ": it is of another version of zs");
  return found;
}

}  // namespace zs::device::cuda
