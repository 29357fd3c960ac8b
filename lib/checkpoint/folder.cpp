// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tensorfile/storage.hpp"

namespace zs::checkpoint {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint_";

std::vector<std::int64_t> steps(const std::string& run_folder) {
  std::vector<std::int64_t> found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(run_folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const auto step = parse_int(std::string_view(name).substr(kPrefix.size()));
    if (step && entry.is_directory()) found.push_back(*step);
  }
  if (failure) throw Error(run_folder, 0, failure.message());
  std::sort(found.begin(), found.end());
  return found;
}

std::string latest(const std::string& run_folder) {
  const auto all = steps(run_folder);
  if (!all.empty()) return run_folder + "/" + std::string(kPrefix) + to_text(all.back());
  const std::string last = run_folder + "/final_checkpoint";
  return fs::is_directory(last) ? last : "";
}

void prune(const std::string& run_folder, std::int64_t keep) {
  auto all = steps(run_folder);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < all.size(); ++i) {
    // Renamed first: a folder under its final name is whole at every moment.
    const fs::path old = fs::path(run_folder) / (std::string(kPrefix) + to_text(all[i]));
    const fs::path gone = fs::path(run_folder) / (".removed_" + to_text(all[i]));
    fs::rename(old, gone);
    fs::remove_all(gone);
  }
}

std::vector<std::string> files(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::map<std::string, std::string> read_sums(const std::string& folder) {
  const std::string path = folder + "/SHA256SUMS";
  std::istringstream lines(Input(path).read_all());
  std::map<std::string, std::string> sums;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.size() < 67 || line.substr(64, 2) != "  ") throw Error(path, number, "expected a digest and a file");
    sums[line.substr(66)] = line.substr(0, 64);
  }
  if (sums.empty()) throw Error(path, 0, "is empty");
  return sums;
}

void verify(const std::string& folder, const std::string& file, const std::string& digest) {
  const std::string path = folder + "/" + file;
  if (sha256(tensorfile::Mapping::open(path)->bytes()) != digest) {
    throw Error(path, 0,
                "does not have the checksum that SHA256SUMS gives: the file is damaged, use another checkpoint");
  }
}

void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = descriptor >= 0 && ::fsync(descriptor) == 0;
  if (descriptor >= 0) ::close(descriptor);
  if (!done) throw Error(folder, 0, "sync: " + errno_text());
}

}  // namespace zs::checkpoint
