// SPDX-License-Identifier: Apache-2.0
#include "base/claim.hpp"
#include "base/folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "base/error.hpp"

namespace zs {
namespace {

namespace fs = std::filesystem;

/// A file that was read. The time of its last change too: an inode may become another file's.
using Read = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t>;

struct Claim {
  std::string path, by;
  bool file = false;  // else a folder, or nothing yet
  dev_t device = 0;
  ino_t inode = 0;
};

// Files are read by many threads.
struct Known {
  std::mutex guard;
  std::vector<Claim> claims;
  std::set<Read> reads;
};

Known& known() {
  static Known* const files = new Known;  // threads may read files while the process ends
  return *files;
}

Read read_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

[[noreturn]] void refuse(const std::string& name, const std::string& by) {
  throw Error(name, 0, "is an input, and " + by + " would write over it: name another file");
}

/// Whether the path, or for "-" stdout, is a file. Pipes and devices lose nothing by being written.
bool find_file(const std::string& path, struct stat& status) {
  return (path == "-" ? ::fstat(STDOUT_FILENO, &status) : ::stat(path.c_str(), &status)) == 0 &&
         S_ISREG(status.st_mode);
}

/// Whether the claimed file is that one, still: where another has taken its place, its inode may become anyone's.
bool claims(const Claim& claim, const struct stat& file) {
  struct stat now {};
  return claim.file && claim.device == file.st_dev && claim.inode == file.st_ino && find_file(claim.path, now) &&
         now.st_dev == file.st_dev && now.st_ino == file.st_ino;
}

/// Whether `path` is in the folder.
bool inside(const std::string& path, const std::string& folder) {
  std::error_code failure;
  const std::string file = fs::weakly_canonical(path, failure).string();
  const std::string place = failure ? "" : fs::weakly_canonical(folder, failure).string();
  return !place.empty() && file.starts_with(place.ends_with('/') ? place : place + "/");
}

}  // namespace

void claim_output(const std::string& path, const std::string& by) {
  struct stat status {};
  const bool file = find_file(path, status);
  Known& files = known();
  const std::scoped_lock lock(files.guard);
  if (file && files.reads.count(read_of(status))) refuse(path == "-" ? "stdout" : path, by);
  files.claims.push_back({path, by, file, status.st_dev, status.st_ino});
}

void require_place(const std::string& path, const std::string& by) {
  std::error_code failure;
  if (path == "-" || fs::is_other(path, failure)) return;
  if (is_folder(path)) throw Error(path, 0, "is a folder, and " + by + " takes a file");
  const std::string parent = fs::path(path).parent_path().string(), folder = parent.empty() ? "." : parent;
  if (!is_there(folder)) throw Error(path, 0, "cannot be written by " + by + ": there is no folder " + folder);
  require_folder(folder, by);
}

void require_folder(const std::string& path, const std::string& by) {
  std::error_code failure;
  fs::path folder = fs::absolute(path, failure);
  while (folder.has_relative_path() && !fs::exists(fs::symlink_status(folder, failure))) folder = folder.parent_path();
  if (!is_folder(folder)) throw Error(path, 0, folder.string() + " is not a folder: " + by + " cannot write there");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(path, 0, by + " cannot write there: " + folder.string() + ": " + errno_text());
}

void note_input(int file, const std::string& name) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return;
  Known& files = known();
  const std::scoped_lock lock(files.guard);
  for (const Claim& claim : files.claims) {
    if (claims(claim, status)) refuse(name, claim.by);
  }
  files.reads.insert(read_of(status));
}

void check_output(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  Known& files = known();
  const std::scoped_lock lock(files.guard);
  if (!files.reads.count(read_of(status))) return;
  for (const Claim& claim : files.claims) {
    if (!claim.file && inside(path, claim.path)) refuse(path, claim.by);
  }
}

}  // namespace zs
