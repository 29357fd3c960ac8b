// SPDX-License-Identifier: Apache-2.0
#include "registry/runs.hpp"

#include <dirent.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <unordered_map>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/sheet.hpp"
#include "config/known.hpp"
#include "registry/record.hpp"

// runs.csv is rewritten as a whole if it differs from the records. A process that loses a race writes an older table,
// which the next reader replaces. Nothing is locked.

namespace zs::registry {
namespace {

/// The columns that name a run: always present, so that readers of runs.csv can rely on them.
const std::vector<const attribute::Attribute*>& leading() {
  static const auto rows = attribute::filtered([](const attribute::Attribute& row) { return row.leads; });
  return rows;
}

/// The position of a column: names of a run first, then settings in the order of their table, then the rest by name.
std::size_t rank(const std::string& name) {
  const auto& first = leading();
  const auto lead = std::ranges::find_if(first, [&](const auto* row) { return row->name == name; });
  if (lead != first.end()) return static_cast<std::size_t>(lead - first.begin());
  const config::Known* const row = config::known(name);
  return first.size() + (row ? static_cast<std::size_t>(row - config::known().data()) : config::known().size());
}

}  // namespace

const Column* Runs::find(std::string_view name) const {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

const std::string& Runs::text(std::size_t row, std::string_view column) const {
  static const std::string kAbsent;
  const Column* const found = find(column);
  return found ? found->text(row) : kAbsent;
}

Fields Runs::fields(std::size_t row) const {
  Fields fields;
  for (const Column& column : columns) {
    if (column.codes[row] != 0) fields.emplace_back(column.name, column.text(row));
  }
  return fields;
}

Runs assemble(const std::vector<Fields>& rows) {
  Runs runs;
  std::unordered_map<std::string, std::size_t> places;
  std::vector<std::unordered_map<std::string, std::uint32_t>> codes;
  const auto column_of = [&](const std::string& name) {
    const auto [place, is_new] = places.try_emplace(name, runs.columns.size());
    if (is_new) {
      runs.columns.push_back({name, {""}, std::vector<std::uint32_t>(rows.size())});
      codes.push_back({{"", 0}});
    }
    return place->second;
  };
  for (const attribute::Attribute* const row : leading()) column_of(std::string(row->name));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const auto& [key, value] : rows[r]) {
      const std::size_t at = column_of(key);
      Column& column = runs.columns[at];
      const auto [code, unseen] = codes[at].try_emplace(value, static_cast<std::uint32_t>(column.values.size()));
      if (unseen) column.values.push_back(value);
      column.codes[r] = code->second;
    }
  }
  std::erase_if(runs.columns, [](const Column& column) {
    return column.values.size() == 1 && rank(column.name) >= leading().size();
  });
  std::ranges::sort(runs.columns, [](const Column& a, const Column& b) {
    const std::size_t x = rank(a.name), y = rank(b.name);
    return x != y ? x < y : a.name < b.name;
  });
  return runs;
}

namespace {

constexpr off_t kLongCsv = 4 << 20;                        // bytes
constexpr std::size_t kLongestCsv = std::size_t{1} << 30;  // bytes
constexpr std::array kCsvNames = {"runs.csv", "zs-runs.csv"};

struct Folder {
  std::string id;
  struct stat status {};
};

/// The registry's folder. Throws Error if there is none.
struct stat status_of(const std::string& registry) {
  struct stat status {};
  if (::stat(registry.c_str(), &status) != 0)
    throw Error(registry, 0,
                errno == ENOENT ? "no such registry; a training makes it, --registry names another" : errno_text());
  if (!S_ISDIR(status.st_mode)) throw Error(registry, 0, "is not a folder, so no registry");
  return status;
}

/// The folders of the registry, by name. A folder may vanish meanwhile.
std::vector<Folder> folders(const std::string& registry) {
  std::vector<Folder> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(registry.c_str()), ::closedir);
  if (!open) throw Error(registry, 0, errno_text());
  while (const dirent* const entry = ::readdir(open.get())) {
    if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK))
      continue;
    Folder folder{entry->d_name};
    if (::fstatat(::dirfd(open.get()), entry->d_name, &folder.status, 0) != 0 || !S_ISDIR(folder.status.st_mode))
      continue;
    found.push_back(std::move(folder));
  }
  std::ranges::sort(found, [](const Folder& a, const Folder& b) { return a.id < b.id; });
  return found;
}

/// Whether everyone with access to the registry may also read a run, so that its record may be in runs.csv.
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
  static const RE2 kForm("[0-9]{8}_[0-9]{6}_[0-9a-z]{6}");
  return RE2::FullMatch(id, kForm);
}

/// Whether a CSV was written by zs, complete or truncated: its first columns are ours, and its ids are ours or folders
/// of the registry. If in doubt, it was not.
bool ours(std::string_view csv, const std::vector<Folder>& runs) {
  static const std::string kHeader = to_csv(assemble({}));  // of no runs: the permanent columns
  const std::string_view first = std::string_view(kHeader).substr(0, kHeader.size() - 1);
  if (!csv.starts_with(first)) return first.starts_with(csv);
  bool quoted = false, id = false;  // the next cell is an id
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (const std::size_t end = csv.find(',', i); id && end != std::string_view::npos) {
      const std::string_view name = csv.substr(i, end - i);
      if (!names_run(name) && !std::ranges::binary_search(runs, name, {}, &Folder::id)) return false;
    }
    quoted ^= csv[i] == '"';
    id = csv[i] == '\n' && !quoted;
  }
  return true;
}

/// Replaces a file of the registry. Users who may enter the registry may read it.
void replace(const std::string& path, const struct stat& registry, std::string_view bytes) {
  Temporary file(path, 0600);
  write_all(file.file(), bytes, path);
  // In a folder of another group the file may be of ours: then it stays ours alone.
  const bool grouped = ::fchown(file.file(), static_cast<uid_t>(-1), registry.st_gid) == 0;
  const mode_t readers =
      ((registry.st_mode & S_IXOTH) != 0 ? S_IROTH : 0) | (grouped && (registry.st_mode & S_IXGRP) != 0 ? S_IRGRP : 0);
  if (::fchmod(file.file(), 0600 | readers) != 0) throw Error(path, 0, errno_text());
  file.publish();
}

/// Brings the table for other programs up to date, and returns its name: runs.csv, but zs-runs.csv if another tool has
/// one of that name; "" if that is another's too. Files of other programs are never touched.
std::string write_csv(const std::string& registry, const struct stat& status, const std::vector<Folder>& runs,
                      const std::string& csv) {
  for (const char* const name : kCsvNames) {
    const std::string path = registry + "/" + name;
    std::optional<std::string> bytes;
    try {
      bytes = read_regular(path, kLongestCsv).bytes;
    } catch (const Error&) {
      if (::access(path.c_str(), F_OK) == 0 || errno != ENOENT || std::filesystem::is_symlink(path)) continue;
    }
    if (bytes == csv) return name;
    if (bytes && !ours(*bytes, runs)) continue;
    try {
      replace(path, status, csv);
    } catch (const std::exception&) {
      // A full disk, a folder where other users' files cannot be replaced, or a race with another writer: the records
      // are complete, and the next reader tries again.
    }
    return name;
  }
  return "";
}

}  // namespace

Runs read_runs(const std::string& registry, const FaultSink& faults) {
  const struct stat status = status_of(registry);
  const std::vector<Folder> entries = folders(registry);
  std::vector<Fields> seen;   // what the caller may see
  std::vector<bool> is_open;  // whether everybody may see it
  std::size_t closed = 0;
  for (const Folder& folder : entries) {
    try {
      Record record = record_of(registry + "/" + folder.id);
      if (record.fields.empty()) continue;  // no run, or one that is not registered yet
      set(record.fields, "run_id", folder.id);
      is_open.push_back(open_to_all(status, folder.status, record.mode));
      seen.push_back(std::move(record.fields));
    } catch (const NotReadable&) {
      ++closed;
    } catch (const Error& error) {
      faults({"", 0, std::string(error.what()) + ": this run is left out"});
    }
  }
  Runs runs = assemble(seen);
  runs.closed = closed;
  if (std::ranges::find(is_open, false) == is_open.end()) {
    runs.csv = write_csv(registry, status, entries, to_csv(runs));
  } else {
    std::vector<Fields> open;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (is_open[i]) open.push_back(std::move(seen[i]));
    }
    runs.csv = write_csv(registry, status, entries, to_csv(assemble(open)));
  }
  return runs;
}

bool is_csv_name(std::string_view name) { return std::ranges::find(kCsvNames, name) != kCsvNames.end(); }

void refresh_soon(const std::string& registry) {
  for (const char* const name : kCsvNames) {
    struct stat status {};
    if (::stat((registry + "/" + name).c_str(), &status) != 0) continue;
    if (status.st_size > kLongCsv || std::abs(std::difftime(std::time(nullptr), status.st_mtime)) < 1) return;
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
  look(registry, [](const std::string& name) {
    return name.starts_with(".removed_") || name == ".runs.index" || names_temporary(name);
  });
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
