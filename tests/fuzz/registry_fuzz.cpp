// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/evidence/registry, run by tests/fuzz/run registry: what others may put into a shared
// registry. The first byte of the input says as what the rest is read: an index, whose checksum is made right, or a
// file of a record.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "fuzz/input.hpp"
#include "registry/image.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"

namespace registry = zs::registry;

namespace {

/// A registry of one run, in memory, for this process.
struct Place {
  std::string registry = "/dev/shm/zs-fuzz-" + std::to_string(::getpid());
  std::string folder = registry + "/20260101_000000_aaaaaa", index = registry + "/.runs.index";
  Place() { std::filesystem::create_directories(folder + "/record"); }
  ~Place() { std::filesystem::remove_all(registry); }
};

void write(const std::string& path, std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void read_as_index(const Place& place, std::string bytes) {
  // Every other input keeps its own head: else few would get beyond the first number.
  const std::string head = registry::image_bytes({}, {}, 0).substr(0, sizeof(std::uint64_t));
  if (bytes.size() >= head.size()) std::memcpy(bytes.data(), head.data(), head.size());
  const std::uint64_t sum = registry::hash(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  write(place.index, bytes);
  const std::array trusted = {::getuid()};
  const registry::Image image = registry::read_image(place.index, trusted);
  if (!image.found) return;
  // What was taken can be used whole, and gives the same bytes again.
  for (const registry::Column& column : image.runs.columns) {
    for (const std::uint32_t code : column.codes) zs::fuzz::require(code < column.values.size());
  }
  zs::fuzz::require(registry::image_bytes(image.runs, image.csv, image.csv_hash) == bytes);
}

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
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0)
    read_as_index(place, std::string(rest));
  else
    read_as_record(place, rest);
  return 0;
}
