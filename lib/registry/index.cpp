// SPDX-License-Identifier: Apache-2.0
#include "registry/index.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "registry/image.hpp"
#include "registry/sheet.hpp"

namespace zs::registry {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// A folder's time tells nothing about what happens within its granularity, so a time is trusted only when it is older.
constexpr std::int64_t kSettled = 2 * kSecond;
constexpr std::int64_t kLongIndex = 8 << 20;  // bytes

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

struct Folder {
  std::string id;
  std::int64_t time = 0;
};

/// The folders of the registry, by name. A folder may vanish meanwhile.
std::vector<Folder> folders(const std::string& registry) {
  std::vector<Folder> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(registry.c_str()), ::closedir);
  if (!open)
    throw Error(registry, 0,
                errno == ENOENT    ? "no such registry"
                : errno == ENOTDIR ? "is not a folder, so no registry"
                                   : errno_text());
  while (const dirent* const entry = ::readdir(open.get())) {
    if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK))
      continue;
    struct stat status {};
    if (::fstatat(::dirfd(open.get()), entry->d_name, &status, 0) != 0 || !S_ISDIR(status.st_mode)) continue;
    all.push_back({entry->d_name, nanoseconds(status.st_mtim)});
  }
  std::sort(all.begin(), all.end(), [](const Folder& a, const Folder& b) { return a.id < b.id; });
  return all;
}

/// The time now by the clock that stamps the registry's files, or 0 if it may not be written.
std::int64_t server_time(const std::string& registry) {
  const std::string path = registry + "/." + writer_name() + ".clock";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return 0;
  struct stat status {};
  const bool known = ::write(file, "", 1) == 1 && ::fstat(file, &status) == 0;
  ::close(file);
  ::unlink(path.c_str());
  return known ? nanoseconds(status.st_mtim) : 0;
}

/// The ids in the first column of a CSV. Ids need no quotes.
std::set<std::string, std::less<>> ids_of(std::string_view csv) {
  std::set<std::string, std::less<>> ids;
  while (!csv.empty()) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    ids.emplace(csv.substr(0, std::min(csv.find(','), end)));
    csv.remove_prefix(std::min(end + 1, csv.size()));
  }
  return ids;
}

/// A runs.csv from before the registry was zs's may list runs that have no record: it is put aside, not replaced.
void keep_foreign_csv(const std::string& registry, const Runs& runs) {
  const std::string path = registry + "/runs.csv";
  if (!std::filesystem::exists(path)) return;
  std::set<std::string, std::less<>> unknown = ids_of(Input(path).read_all());
  if (!unknown.erase("run_id") && unknown.empty()) return;
  for (std::size_t row = 0; row < runs.size(); ++row) unknown.erase(runs.text(row, "run_id"));
  if (unknown.empty()) return;
  std::string kept = path + ".old";
  for (int i = 2; std::filesystem::exists(kept); ++i) kept = path + ".old" + std::to_string(i);
  std::filesystem::rename(path, kept);
}

Stamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_size, nanoseconds(status.st_mtim), status.st_ino};
}

/// Replaces a file of the registry, first written under a name of its own: the stamp is of what was written here,
/// whatever other writers do.
Stamp replace(const std::string& registry, const std::string& name, std::string_view bytes) {
  const std::string own = registry + "/." + writer_name() + "." + name, path = registry + "/" + name;
  write_file(own, bytes);
  const Stamp stamp = stamp_of(own);
  if (::rename(own.c_str(), path.c_str()) != 0) throw Error(path, 0, "rename: " + errno_text());
  return stamp;
}

/// Brings the files up to date with `runs`.
void write_index(const std::string& registry, const Runs& runs, const Image& earlier, bool first) {
  const std::string csv = to_csv(runs);
  if (first) keep_foreign_csv(registry, runs);
  Stamp stamp = stamp_of(registry + "/runs.csv");
  if (!(stamp == earlier.csv) || hash(csv) != earlier.csv_hash) stamp = replace(registry, "runs.csv", csv);
  replace(registry, ".runs.index", image_bytes(runs, stamp, hash(csv)));
}

}  // namespace

Runs read_runs(const std::string& registry, const FaultSink& faults, bool anew) {
  const std::string image_path = registry + "/.runs.index";
  const bool first = !std::filesystem::exists(image_path);
  Image image = anew ? Image{} : read_image(image_path);
  const std::vector<Folder> found = folders(registry);

  const Column* const ids = image.runs.find("run_id");
  std::vector<Row> rows;
  std::deque<Fields> fresh;         // rows point into it
  std::optional<std::int64_t> now;  // taken before the first record is read
  std::size_t old = 0;
  for (const Folder& folder : found) {
    while (old < image.runs.size() && ids->text(old) < folder.id) ++old;
    if (old < image.runs.size() && ids->text(old) == folder.id && image.runs.times[old] == folder.time) {
      rows.push_back({old, nullptr, folder.time});
      continue;
    }
    if (!now) now = server_time(registry);
    try {
      Fields fields = read_record(registry + "/" + folder.id);
      if (fields.empty()) continue;  // no run, or one that is not registered yet
      set(fields, "run_id", folder.id);
      fresh.push_back(std::move(fields));
      rows.push_back({0, &fresh.back(), folder.time + kSettled < *now ? folder.time : 0});
    } catch (const Error& error) {
      faults({"", 0, std::string(error.what()) + ": this run is left out"});
    }
  }
  const bool same = fresh.empty() && rows.size() == image.runs.size() && !anew && !first;
  if (same && image.csv.size > 0 && stamp_of(registry + "/runs.csv") == image.csv) return std::move(image.runs);
  if (!now) now = server_time(registry);
  Runs runs = same ? std::move(image.runs) : assemble(image.runs, rows);
  try {
    if (*now != 0) write_index(registry, runs, image, first);
  } catch (const std::exception&) {
    // A full disk, or a race with another writer: the records hold, and the next reader tries again.
  }
  return runs;
}

void refresh_soon(const std::string& registry) {
  struct stat status {};
  if (::stat((registry + "/.runs.index").c_str(), &status) == 0) {
    const std::int64_t age = std::time(nullptr) * kSecond - nanoseconds(status.st_mtim);
    if (status.st_size > kLongIndex || (age > -kSecond && age < kSecond)) return;
  }
  try {
    read_runs(registry, [](const Fault&) {});
  } catch (const std::exception&) {
    // Whoever lists the runs will see what is wrong with them.
  }
}

void tidy(const std::string& registry) {
  namespace fs = std::filesystem;
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code failure;
  std::vector<fs::path> left;
  const auto look = [&](const fs::path& folder, auto is_left) {
    for (const auto& entry : fs::directory_iterator(folder, failure)) {
      const std::string name = entry.path().filename().string();
      if (is_left(name) && entry.last_write_time(failure) < old) left.push_back(entry.path());
    }
  };
  look(registry, [](const std::string& name) {
    return name.starts_with(".removed_") || (name.starts_with('.') && name != ".runs.index" &&
                                             (name.ends_with(".clock") || name.find(".runs.") != std::string::npos));
  });
  for (const Folder& folder : folders(registry)) {
    look(registry + "/" + folder.id,
         [](const std::string& name) { return name.starts_with(".0") && name.ends_with(".tsv"); });
  }
  for (const fs::path& path : left) fs::remove_all(path, failure);
}

std::string to_csv(const Runs& runs) {
  std::string out;
  std::vector<std::vector<std::string>> cells;  // per column, its distinct values as cells
  for (const Column& column : runs.columns) {
    out += (cells.empty() ? "" : ",") + csv_cell(column.name);
    auto& texts = cells.emplace_back();
    for (const std::string& value : column.values) texts.push_back(csv_cell(value));
  }
  out += "\n";
  for (std::size_t row = 0; row < runs.size(); ++row) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c) out += ',';
      out += cells[c][runs.columns[c].codes[row]];
    }
    out += '\n';
  }
  return out;
}

}  // namespace zs::registry
