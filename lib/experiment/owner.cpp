// SPDX-License-Identifier: Apache-2.0
#include "experiment/owner.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.hpp"
#include "registry/record.hpp"

namespace zs::experiment {
namespace {

const std::string kOthersWords = ": what it says would run as you (--any_owner runs it all the same)";

std::string belongs(uid_t owner) {
  const passwd* const user = ::getpwuid(owner);
  return "belongs to " + (user ? std::string(user->pw_name) : "user " + std::to_string(owner)) + kOthersWords;
}

}  // namespace

std::string of_another(const std::vector<std::string>& paths, const std::set<uid_t>& record) {
  for (const std::string& path : paths) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return path + ": " + errno_text();
    if (S_ISLNK(status.st_mode)) return path + " is a link" + kOthersWords;
    if (status.st_uid != ::geteuid()) return path + " " + belongs(status.st_uid);
  }
  for (const uid_t owner : record) {
    if (owner != ::geteuid()) return "a part of its record " + belongs(owner);
  }
  return "";
}

std::vector<std::string> deciding_files(const std::string& folder) {
  std::vector<std::string> paths = {folder};
  for (const char* const name : {"/metadata.json", "/frozen.sha256", "/.cells", "/.cells/settings", "/.lock", "/record",
                                 "/config.yaml", "/settings"}) {
    std::error_code failure;
    if (std::filesystem::symlink_status(folder + name, failure).type() != std::filesystem::file_type::not_found)
      paths.push_back(folder + name);
  }
  return paths;
}

void require_own(const std::string& folder) {
  const std::string other = of_another(deciding_files(folder), registry::record_of(folder).owners);
  if (!other.empty()) throw Error(other);
}

}  // namespace zs::experiment
