// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/evidence/registry, run by tests/fuzz/run registry: what others may put into a shared
// registry: the input is a file of a record.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"

namespace registry = zs::registry;

namespace {

/// A registry of one run, in memory, for this process.
struct Place {
  std::string registry = "/dev/shm/zs-fuzz-" + std::to_string(::getpid());
  std::string folder = registry + "/20260101_000000_aaaaaa";
  Place() { std::filesystem::create_directories(folder + "/record"); }
  ~Place() { std::filesystem::remove_all(registry); }
};

void write(const std::string& path, std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void read_as_record(const Place& place, std::string_view bytes) {
  write(place.folder + "/record/00000001-host-1-0.tsv", bytes);
  try {
    registry::record_of(place.folder);
  } catch (const zs::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  read_as_record(place, {reinterpret_cast<const char*>(data), size});
  return 0;
}
