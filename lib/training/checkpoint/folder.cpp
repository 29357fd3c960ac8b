// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tensorfile/storage.hpp"

namespace zs::checkpoint {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint_", kState = "accelerator_states";

namespace {

/// Whether a file of a checkpoint's folder is one that somebody reads as the checkpoint's.
bool is_read(const std::string& file) {
  for (const char* const front : {"accelerator_states/", "model", "pytorch_model"}) {
    if (file.starts_with(front)) return true;
  }
  return file == "config.json" || file == "gradients.pt" || file == "gradient_norms.pt" || file == "optimizer.pt";
}

}  // namespace

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
  const std::string last = run_folder + "/final_checkpoint";
  if (fs::is_directory(last)) {
    const auto progress = all.empty() ? std::nullopt : peek(last);
    if (all.empty() || (progress && progress->step >= all.back())) return last;
  }
  return all.empty() ? "" : run_folder + "/" + std::string(kPrefix) + to_text(all.back());
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

void remove_leftovers(const std::string& run_folder) {
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(run_folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".removed_") || (name.starts_with(".") && name.find(".tmp") != std::string::npos)) {
      fs::remove_all(entry.path(), failure);
    } else if (name.starts_with(".") && name.ends_with(".old")) {
      // Between the two renames of Writer::seal there is no checkpoint under the final name.
      const fs::path whole = entry.path().parent_path() / name.substr(1, name.size() - 5);
      if (fs::exists(whole)) {
        fs::remove_all(entry.path(), failure);
      } else {
        fs::rename(entry.path(), whole, failure);
      }
    }
  }
  if (failure) throw Error(run_folder, 0, failure.message());
}

std::vector<std::string> files(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool has_state(const std::string& folder) {
  if (fs::exists(folder + "/" + std::string(kState))) return true;
  if (!fs::exists(folder + "/SHA256SUMS")) return false;
  return Input(folder + "/SHA256SUMS").read_all().find("  " + std::string(kState) + "/") != std::string::npos;
}

std::map<std::string, std::string> read_sums(const std::string& folder) {
  const std::string path = folder + "/SHA256SUMS";
  std::istringstream lines(Input(path).read_all());
  std::map<std::string, std::string> sums;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.size() < 67 || line.substr(64, 2) != "  ") throw Error(path, number, "expected a digest and a file");
    if (!sums.emplace(line.substr(66), line.substr(0, 64)).second)
      throw Error(path, number, "lists " + line.substr(66) + " a second time");
  }
  for (const auto& [file, digest] : sums) {
    if (std::error_code ignored; !fs::exists(folder + "/" + file, ignored))
      throw Error(folder + "/" + file, 0, "is missing, and SHA256SUMS lists it: the checkpoint is damaged");
  }
  for (const std::string& file : files(folder)) {
    if (is_read(file) && sums.count(file) == 0) {
      throw Error(path, 0,
                  "does not list " + file +
                      ", so zs cannot check that file: use another checkpoint, or "
                      "remove the file if it is not the checkpoint's");
    }
  }
  return sums;
}

void verify(const std::string& folder, const std::string& file, const std::string& digest) {
  const std::string path = folder + "/" + file;
  if (sha256(Mapping::open(path)->bytes()) != digest) {
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
