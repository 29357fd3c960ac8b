// SPDX-License-Identifier: Apache-2.0
#include "base/folder.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/error.hpp"

namespace zs {

namespace fs = std::filesystem;

namespace {

std::string pattern() {
  std::error_code failure;
  const fs::path place = fs::temp_directory_path(failure);
  if (failure) {
    const char* const named = std::getenv("TMPDIR");
    throw Error("TMPDIR" + (named ? " is '" + std::string(named) + "'" : "") + ": no folder for temporary files");
  }
  return (place / "zs-XXXXXX").string();
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    paths.push_back(at->path());
  if (failure && failure != std::errc::no_such_file_or_directory && failure != std::errc::not_a_directory)
    throw Error(folder.string(), 0, "cannot list the folder: " + failure.message());
  std::ranges::sort(paths);
  return paths;
}

std::vector<fs::path> files_below(const fs::path& folder, bool hidden) {
  std::vector<fs::path> files;
  for (const fs::path& entry : entries_of(folder)) {
    if (!hidden && entry.filename().string().starts_with(".")) continue;
    if (is_file(entry))
      files.push_back(entry);
    else if (std::error_code ignored; !fs::is_symlink(entry, ignored))
      std::ranges::copy(files_below(entry, hidden), std::back_inserter(files));
  }
  return files;
}

TemporaryFolder::TemporaryFolder() : path_(pattern()) {
  if (!::mkdtemp(path_.data())) throw Error(path_, 0, "cannot make a temporary folder: " + errno_text());
  guard_.emplace(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace zs
