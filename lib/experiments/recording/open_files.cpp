// SPDX-License-Identifier: Apache-2.0
#include "recording/open_files.hpp"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>
#include <memory>
#include <set>

#include "base/number.hpp"
#include "parse/tracked.hpp"

namespace zs::recording {
namespace {

/// The names in a folder; none if it cannot be read.
template <typename Use>
void each_name(const std::string& folder, Use use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  while (const dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    if (entry->d_name[0] != '.') use(entry->d_name);
  }
}

}  // namespace

std::vector<pid_t> children(pid_t process) {
  std::vector<pid_t> all;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task/";
  each_name(tasks, [&](const char* task) {
    std::ifstream file(tasks + task + "/children");
    for (pid_t child = 0; file >> child;) all.push_back(child);
  });
  return all;
}

std::vector<pid_t> family(pid_t process) {
  std::vector<pid_t> all = {process};
  std::set<pid_t> seen = {process};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const pid_t child : children(all[i])) {
      if (seen.insert(child).second) all.push_back(child);
    }
  }
  return all;
}

std::vector<std::string> open_tracker_files(const std::vector<pid_t>& processes) {
  std::set<std::string> files;
  std::array<char, PATH_MAX> target;
  for (const pid_t process : processes) {
    const std::string folder = "/proc/" + std::to_string(process) + "/fd/";
    each_name(folder, [&](const char* number) {
      const ssize_t size = ::readlink((folder + number).c_str(), target.data(), target.size());
      if (size <= 0 || target[0] != '/') return;
      const std::string path(target.data(), static_cast<std::size_t>(size));
      if (parse::source_of(path) != parse::Source::log) files.insert(path);
    });
  }
  return {files.begin(), files.end()};
}

}  // namespace zs::recording
