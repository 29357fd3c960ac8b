// SPDX-License-Identifier: Apache-2.0
#include "registry/index.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/sheet.hpp"
#include "registry/image.hpp"

// Reading a registry of R runs costs one stat() for each folder, and reading a record only for those that changed:
//
//   .runs.index   the table by columns (image.hpp), and for each run the time of its folder when its record was read
//   a folder      has not changed if its time (ctime, which no program can set back) is the same. A time is only
//                 kept once it is older than kSettled: two changes within its granularity would look like one
//
// Rows that changed are read from their records and replace the old ones (assemble() in runs.cpp); then the index and
// runs.csv are rewritten, each as a whole. A process that loses a race writes an older index, which is still correct:
// the times show the next reader which rows to read again. Nothing is locked.
namespace zs::registry {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// A folder's time does not show changes within its granularity, so a time is trusted only if it is older than that.
constexpr std::int64_t kSettled = 2 * kSecond;
constexpr std::int64_t kLongIndex = 8 << 20;               // bytes
constexpr std::size_t kLongestCsv = std::size_t{1} << 30;  // bytes

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

struct Folder {
  std::string id;
  struct stat status {};
  /// The last change: the record grew, or its permissions changed. Unlike the time of modification, it cannot be set
  /// back.
  std::int64_t time() const { return nanoseconds(status.st_ctim); }
};

/// The registry's folder. Throws Error if there is none.
struct stat status_of(const std::string& registry) {
  struct stat status {};
  if (::stat(registry.c_str(), &status) != 0)
    throw Error(registry, 0, errno == ENOENT ? "no such registry" : errno_text());
  if (!S_ISDIR(status.st_mode)) throw Error(registry, 0, "is not a folder, so no registry");
  return status;
}

/// The folders of the registry, by name. A folder may vanish meanwhile.
std::vector<Folder> folders(const std::string& registry) {
  std::vector<Folder> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(registry.c_str()), ::closedir);
  if (!open) throw Error(registry, 0, errno_text());
  while (const dirent* const entry = ::readdir(open.get())) {
    if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK))
      continue;
    Folder folder{entry->d_name};
    if (::fstatat(::dirfd(open.get()), entry->d_name, &folder.status, 0) != 0 || !S_ISDIR(folder.status.st_mode))
      continue;
    all.push_back(std::move(folder));
  }
  std::sort(all.begin(), all.end(), [](const Folder& a, const Folder& b) { return a.id < b.id; });
  return all;
}

/// The time now by the clock that stamps the registry's files, or 0 if it may not be written.
std::int64_t server_time(const std::string& registry) {
  try {
    const Temporary clock(registry + "/clock");
    struct stat status {};
    return ::write(clock.file(), "", 1) == 1 && ::fstat(clock.file(), &status) == 0 ? nanoseconds(status.st_mtim) : 0;
  } catch (const Error&) {
    return 0;
  }
}

/// Whether everyone with access to the registry may also read a run, so that its record may be in the index.
bool open_to_all(const struct stat& registry, const struct stat& run, mode_t record) {
  const auto permits = [&](mode_t read, mode_t enter) {
    return (run.st_mode & read) != 0 && (run.st_mode & enter) != 0 && (record & read) != 0;
  };
  const bool others = permits(S_IROTH, S_IXOTH);
  if ((registry.st_mode & S_IXOTH) != 0 && !others) return false;
  return (registry.st_mode & S_IXGRP) == 0 || others || (run.st_gid == registry.st_gid && permits(S_IRGRP, S_IXGRP));
}

/// "20261121_193003_abcdef", as Run makes them.
bool names_run(std::string_view id) {
  constexpr std::string_view kForm = "dddddddd_dddddd_llllll";
  if (id.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const bool digit = id[i] >= '0' && id[i] <= '9', letter = id[i] >= 'a' && id[i] <= 'z';
    if (kForm[i] == '_' ? id[i] != '_' : kForm[i] == 'd' ? !digit : !digit && !letter) return false;
  }
  return true;
}

/// Whether a CSV was written by zs, complete or truncated: the index knows it, or its first columns and its ids are
/// ours. If in doubt, it was not.
bool ours(const std::string& path, const Image& image) {
  std::string bytes;
  try {
    bytes = read_regular(path, kLongestCsv).bytes;
  } catch (const Error&) {
    return ::access(path.c_str(), F_OK) != 0 && errno == ENOENT && !std::filesystem::is_symlink(path);
  }
  if (image.csv.size > 0 && hash(bytes) == image.csv_hash) return true;  // also with ids of renamed folders
  static const std::string kHeader = to_csv(assemble({}, {}));           // of no runs: the permanent columns
  const std::string_view first = std::string_view(kHeader).substr(0, kHeader.size() - 1);
  std::string_view csv(bytes);
  if (!csv.starts_with(first)) return first.starts_with(csv);
  bool quoted = false, id = false;  // the next cell is an id
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (id && csv.find(',', i) != std::string_view::npos && !names_run(csv.substr(i, csv.find(',', i) - i)))
      return false;
    quoted ^= csv[i] == '"';
    id = csv[i] == '\n' && !quoted;
  }
  return true;
}

Stamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return {status.st_size, nanoseconds(status.st_mtim), status.st_ino};
}

/// The table for other programs: runs.csv, but zs-runs.csv if another tool has one of that name; "" if that is
/// another's too. Files of other programs are never touched.
std::string csv_name(const std::string& registry, const Image& image) {
  for (const char* const name : {"runs.csv", "zs-runs.csv"}) {
    const std::string path = registry + "/" + name;
    if ((image.csv.size > 0 && stamp_of(path) == image.csv) || ours(path, image)) return name;
  }
  return "";
}

/// Replaces a file of the registry; the stamp belongs to the text written here, also if others write at the same time.
/// Users who may enter the registry may read the file.
Stamp replace(const std::string& path, const struct stat& registry, std::string_view bytes) {
  Temporary file(path, 0600);
  write_all(file.file(), bytes, path);
  // In a folder of another group the file may be of ours: then it stays ours alone.
  const bool grouped = ::fchown(file.file(), static_cast<uid_t>(-1), registry.st_gid) == 0;
  const mode_t readers =
      ((registry.st_mode & S_IXOTH) != 0 ? S_IROTH : 0) | (grouped && (registry.st_mode & S_IXGRP) != 0 ? S_IRGRP : 0);
  if (::fchmod(file.file(), 0600 | readers) != 0) throw Error(path, 0, errno_text());
  const Stamp stamp = stamp_of(file.path());
  file.publish();
  return stamp;
}

/// Brings the files up to date with `runs`.
void write_index(const std::string& registry, const struct stat& status, const Runs& runs, const Image& earlier,
                 const std::string& csv_name) {
  const std::string csv = to_csv(runs);
  Stamp stamp;
  if (!csv_name.empty()) {
    stamp = stamp_of(registry + "/" + csv_name);
    if (!(stamp == earlier.csv) || hash(csv) != earlier.csv_hash)
      stamp = replace(registry + "/" + csv_name, status, csv);
  }
  replace(registry + "/.runs.index", status, image_bytes(runs, stamp, hash(csv)));
}

}  // namespace

Runs read_runs(const std::string& registry, const FaultSink& faults, bool anew) {
  const struct stat status = status_of(registry);
  const std::array trusted = {::geteuid(), status.st_uid};
  Image image = read_image(registry + "/.runs.index", trusted);
  if (anew) image.found = false, image.runs = {};  // keeps no row of the old index, only which table it wrote

  const Column* const ids = image.runs.find("run_id");
  std::vector<Row> rows, open_rows;  // all that the caller may see, and those that everybody may
  std::deque<Fields> fresh;          // rows point into it
  std::optional<std::int64_t> now;   // taken before the first record is read
  std::size_t old = 0, news = 0, closed = 0;
  for (const Folder& folder : folders(registry)) {
    while (old < image.runs.size() && ids->text(old) < folder.id) ++old;
    if (old < image.runs.size() && ids->text(old) == folder.id && image.runs.times[old] == folder.time()) {
      rows.push_back({old, nullptr, folder.time()});
      open_rows.push_back(rows.back());
      continue;
    }
    if (!now) now = server_time(registry);
    try {
      Record record = record_of(registry + "/" + folder.id);
      if (record.fields.empty()) continue;  // no run, or one that is not registered yet
      set(record.fields, "run_id", folder.id);
      fresh.push_back(std::move(record.fields));
      rows.push_back({0, &fresh.back(), folder.time() + kSettled < *now ? folder.time() : 0});
      if (!open_to_all(status, folder.status, record.mode)) continue;
      open_rows.push_back(rows.back());
      ++news;
    } catch (const NotReadable&) {
      ++closed;
    } catch (const Error& error) {
      faults({"", 0, std::string(error.what()) + ": this run is left out"});
    }
  }
  const std::string name = csv_name(registry, image);
  const bool same = news == 0 && open_rows.size() == image.runs.size() && image.found && !anew;
  const bool written = same && (name.empty() || stamp_of(registry + "/" + name) == image.csv);
  if (!now && !written) now = server_time(registry);
  const bool all = rows.size() == open_rows.size();
  Runs runs = same && all ? std::move(image.runs) : assemble(image.runs, rows);
  try {
    if (!written && *now != 0) {
      write_index(registry, status, all ? runs : assemble(image.runs, open_rows), image, name);
    }
  } catch (const std::exception&) {
    // A full disk, a folder where other users' files cannot be replaced, or a race with another writer: the records are
    // complete, and the next reader tries again.
  }
  runs.closed = closed;
  runs.csv = name;
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
    // The next listing of the runs reports the faults.
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
  look(registry, [](const std::string& name) { return name.starts_with(".removed_") || names_temporary(name); });
  for (const Folder& folder : folders(registry)) {
    look(registry + "/" + folder.id, names_temporary);
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
