// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "checkpoint/checkpoint.hpp"

namespace zs::checkpoint {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint_", kState = "accelerator_states";

std::vector<std::int64_t> steps(const std::string& run_folder) {
  std::vector<std::int64_t> found;
  for (const fs::path& entry : entries_of(run_folder)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const auto step = parse_int(std::string_view(name).substr(kPrefix.size()));
    if (step && is_folder(entry)) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string latest(const std::string& run_folder) {
  const auto saved = steps(run_folder);
  const std::string last = run_folder + "/final_checkpoint";
  if (fs::is_directory(last)) {
    const auto progress = saved.empty() ? std::nullopt : peek(last);
    if (saved.empty() || (progress && progress->step >= saved.back())) return last;
  }
  return saved.empty() ? "" : run_folder + "/" + std::string(kPrefix) + to_text(saved.back());
}

void prune(const std::string& run_folder, std::int64_t keep) {
  auto saved = steps(run_folder);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < saved.size(); ++i) {
    // Renamed first: a folder under its final name is whole at every moment.
    const fs::path old = fs::path(run_folder) / (std::string(kPrefix) + to_text(saved[i]));
    const fs::path gone = fs::path(run_folder) / (".removed_" + to_text(saved[i]));
    fs::rename(old, gone);
    fs::remove_all(gone);
  }
}

void remove_leftovers(const std::string& run_folder) {
  std::error_code failure;
  for (const fs::path& entry : entries_of(run_folder)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(".removed_") || (name.starts_with(".") && name.find(".tmp") != std::string::npos)) {
      fs::remove_all(entry, failure);
    } else if (name.starts_with(".") && name.ends_with(".old")) {
      // Between the two renames of Writer::seal no checkpoint has the final name.
      const fs::path whole = entry.parent_path() / name.substr(1, name.size() - 5);
      if (fs::exists(whole)) {
        fs::remove_all(entry, failure);
      } else {
        fs::rename(entry, whole, failure);
      }
    }
  }
  if (failure) throw Error(run_folder, 0, failure.message());
}

bool has_state(const std::string& folder) {
  if (fs::exists(folder + "/" + std::string(kState))) return true;
  if (!fs::exists(folder + "/SHA256SUMS")) return false;
  return Input(folder + "/SHA256SUMS").read_all().find("  " + std::string(kState) + "/") != std::string::npos;
}

void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = descriptor >= 0 && ::fsync(descriptor) == 0;
  if (descriptor >= 0) ::close(descriptor);
  if (!done) throw Error(folder, 0, "sync: " + errno_text());
}

}  // namespace zs::checkpoint
