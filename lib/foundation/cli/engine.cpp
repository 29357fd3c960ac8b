// SPDX-License-Identifier: Apache-2.0
#include "cli/engine.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/error.hpp"
#include "base/folder.hpp"

namespace zs::cli {

namespace {

namespace fs = std::filesystem;

/// Paths used by `make` and `make install`, relative to this program.
std::array<fs::path, 2> places() {
  std::error_code failure;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failure).parent_path();
  return {folder / "engine", folder.parent_path() / "lib" / "zs" / "engine"};
}

/// The engine of this installation; empty if there is none.
fs::path engine() {
  for (const fs::path& path : places()) {
    if (is_there(path)) return path;
  }
  return {};
}

}  // namespace

void become_engine(const std::string& name, char** argv) {
  // LibTorch fills its tables before main(): then zs could not report that there is no room.
  constexpr rlim_t kLeast = 500'000'000;
  rlimit room{};
  if (::getrlimit(RLIMIT_AS, &room) == 0 && room.rlim_cur < kLeast)
    throw Error("LibTorch needs more than 500 MB of address space, and this shell leaves " +
                std::to_string(room.rlim_cur / 1'000'000) + " MB (ulimit -v)");
  const fs::path path = engine();
  if (path.empty()) {
    throw Error("training needs zs's engine, which is not installed here (" + places()[0].string() + ", " +
                places()[1].string() + "): `make` builds it with LibTorch and MPI, and the package zs-train has it");
  }
  std::string called = name;
  argv[0] = called.data();
  ::execv(path.c_str(), argv);
  throw Error(path.string(), 0, "cannot be started: " + errno_text());
}

void leave_engine(int status) {
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(status);
}

int launched_rank() {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK"}) {
    if (const char* const value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

Hooks engine_hooks() {
  Hooks hooks;
  hooks.place = [] {
    if (launched_rank() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return std::string();
  };
  hooks.build = []() -> std::string {
    const fs::path path = engine();
    if (path.empty()) return "without an engine";
    // Where the engine looks for a GPU's library (device/backend.hpp).
    return fs::exists(path.parent_path() / "libzs-cuda.so") ? "with CUDA" : "without CUDA";
  };
  return hooks;
}

}  // namespace zs::cli
