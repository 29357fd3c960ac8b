// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/evidence/state, run by tests/fuzz/run state. The input is a folder: of each file
//   1 byte   the length of its name, and the name
//   1 byte   how many storages it has, and of each 2 bytes, its size
//   4 bytes  the length of what it holds, and that
// What begins as a pickle is put into an archive of torch.save with these storages, whose checksums are right, so that
// mutations reach the readers; but not .metadata. tests/fuzz/state_seeds writes such inputs of recorded checkpoints.
// What is read whole must be equal to itself, and is converted: convert() compares what it wrote with it.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "checkpoints/read.hpp"
#include "fuzz/input.hpp"
#include "state/convert.hpp"
#include "state/describe.hpp"
#include "state/diff.hpp"
#include "tensorfile/storage.hpp"

namespace fs = std::filesystem;
namespace state = zs::state;

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;  // a view may repeat one element without end

void append(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> 8 * i & 0xff);
}

/// A zip archive of stored entries (PKWARE's APPNOTE.TXT).
class Archive {
 public:
  void add(const std::string& name, const std::string& data) {
    std::string fields;
    append(fields, 0, 2), append(fields, 0, 2), append(fields, 0, 4);  // flags, method, time
    append(fields, zs::tensorfile::crc32_of(data), 4), append(fields, data.size(), 4), append(fields, data.size(), 4);
    append(fields, name.size(), 2), append(fields, 0, 2);
    directory_ += "PK\1\2" + std::string("\24\0\24\0", 4) + fields;
    directory_ += std::string(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    append(directory_, bytes_.size(), 4);
    directory_ += name;
    bytes_ += "PK\3\4" + std::string("\24\0", 2) + fields + name + data;
    ++count_;
  }
  std::string finished() const {
    std::string all = bytes_ + directory_ + "PK\5\6";
    append(all, 0, 4), append(all, count_, 2), append(all, count_, 2);
    append(all, directory_.size(), 4), append(all, bytes_.size(), 4), append(all, 0, 2);
    return all;
  }

 private:
  std::string bytes_, directory_;
  std::uint64_t count_ = 0;
};

/// Takes numbers and texts from the input; what is not there is 0 or empty.
class Bytes {
 public:
  explicit Bytes(std::string_view all) : rest_(all) {}
  bool empty() const { return rest_.empty(); }
  std::string_view take(std::size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    int shift = 0;
    for (const char byte : take(bytes)) value |= std::uint64_t{static_cast<std::uint8_t>(byte)} << shift, shift += 8;
    return value;
  }

 private:
  std::string_view rest_;
};

/// A name that stays in the folder, of at most four parts.
std::string safe(std::string_view name) {
  std::string made;
  for (const char c : name.substr(0, 100)) {
    const bool deep = c == '/' && std::count(made.begin(), made.end(), '/') == 3;
    made += c == '\0' || deep ? '_' : c;
  }
  if (made.starts_with('/') || made.ends_with('/') || made.empty() || made == ".") made = "_" + made + "_";
  for (std::size_t at; (at = made.find("..")) != made.npos;) made[at] = '_';
  return made;
}

std::string archive(std::string_view pickle, const std::vector<std::size_t>& storages) {
  Archive archive;
  archive.add("archive/data.pkl", std::string(pickle));
  archive.add("archive/version", "3\n");
  archive.add("archive/byteorder", "little");
  for (std::size_t i = 0; i < storages.size(); ++i) {
    std::string data(storages[i], '\0');
    for (std::size_t at = 1; data.size() > 8 && at < data.size(); at += 4)
      data[at] = static_cast<char>(at * (i + 3) / 4 % 64);
    archive.add("archive/data/" + std::to_string(i), data);
  }
  return archive.finished();
}

void write_folder(const std::string& folder, std::string_view input) {
  Bytes bytes(input);
  for (int files = 0; !bytes.empty() && files < 24; ++files) {
    const std::string name = safe(bytes.take(bytes.number(1)));
    std::vector<std::size_t> storages(bytes.number(1));
    for (std::size_t& storage : storages) storage = bytes.number(2);
    const std::string_view content = bytes.take(bytes.number(4));
    const std::string path = folder + "/" + name;
    std::error_code failure;
    fs::create_directories(fs::path(path).parent_path(), failure);
    std::ofstream file(path, std::ios::binary);
    const bool wrapped = content.starts_with('\x80') && !name.ends_with(".metadata");
    file << (wrapped ? archive(content, storages) : std::string(content));
  }
}

void look_at(const std::string& folder) {
  checkpoints::State held = checkpoints::read(folder);
  state::header(held);
  state::kinds(held);
  state::ranks(held);
  state::tensors(held, false);
  std::uint64_t bytes = 0;
  for (const checkpoints::Parameter& parameter : held.parameters) {
    for (const auto& [kind, whole] : state::tensors_of(parameter)) {
      const auto count = static_cast<std::uint64_t>(whole->count());
      if (count > kMostBytes || (bytes += whole->bytes()) > kMostBytes) return;
    }
  }
  for (const auto& [name, piece] : held.paddings) bytes += static_cast<std::uint64_t>(piece.tensor.count());
  if (bytes > kMostBytes) return;
  const bool whole = held.faults.empty();
  state::verify(held);
  const state::Difference same = state::diff(held, held, {});
  zs::fuzz::require(same.verdict != zs::compare::Verdict::different);
  if (!whole) return;
  for (const char* const form : {"dcp", "safetensors", "deepspeed", "universal"}) {
    const std::string to = folder + "-" + form;
    try {
      state::convert(held, to, {.name = form});
    } catch (const zs::Error&) {  // of what this form cannot hold
    }
    fs::remove_all(to);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string folder =
      std::string(fs::exists("/dev/shm") ? "/dev/shm" : "/tmp") + "/zs-fuzz-" + std::to_string(::getpid());
  fs::remove_all(folder);
  fs::create_directory(folder);
  write_folder(folder, {reinterpret_cast<const char*>(data), size});
  try {
    look_at(folder);
  } catch (const zs::Error&) {  // the answer to damaged input; anything else ends the program
  }
  fs::remove_all(folder);
  return 0;
}
