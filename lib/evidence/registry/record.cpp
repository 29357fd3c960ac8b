// SPDX-License-Identifier: Apache-2.0
#include "registry/record.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "base/text.hpp"

namespace zs::registry {
namespace {

constexpr std::string_view kMagic = "#zs-record 1\n";
constexpr const char* kFolder = "record";

constexpr std::size_t kLargestFile = 16 << 20, kLargestRecord = 64 << 20;  // bytes; a usual one has some thousand

/// A file of a record: what orders it, and its name.
using Named = std::pair<std::int64_t, std::string>;

/// "00000003-node07-1234-0.tsv": the leading number, or nothing if no record has a file of that name.
std::optional<std::int64_t> number_of(std::string_view name) {
  static const RE2 kName("(?s)([0-9]{1,15})-.*\\.tsv");  // more digits would leave no number for a later file
  std::int64_t number = 0;
  return RE2::FullMatch(name, kName, &number) ? std::optional(number) : std::nullopt;
}

/// The files of the record in `folder` in their order of priority; empty without a record.
std::vector<Named> files(const std::string& folder) {
  std::vector<Named> names;
  const std::string record = folder + "/" + kFolder;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(record.c_str()), ::closedir);
  if (!open && errno == EACCES) throw NotReadable(record, 0, errno_text());
  if (!open && errno != ENOENT && errno != ENOTDIR) throw Error(record, 0, errno_text());
  while (const dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    const auto number = number_of(entry->d_name);
    if (!number) throw Error(record + "/" + entry->d_name, 0, "has no name of a record's file: move it away");
    names.emplace_back(*number, entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

Regular readable(const std::string& path) {
  try {
    return read_regular(path, kLargestFile);
  } catch (const Error& error) {
    if (::access(path.c_str(), R_OK) != 0 && errno == EACCES) throw NotReadable(error.what());
    throw;
  }
}

/// First what orders it, then what makes it unique.
std::string next_name(const std::string& folder) {
  const std::vector<Named> names = files(folder);
  return fmt::format("{:08}-{}.tsv", names.empty() ? 1 : names.back().first + 1, writer_name());
}

std::string unescaped(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    out += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return out;
}

}  // namespace

void set(Fields& fields, std::string_view key, std::string_view value) {
  const auto found = std::ranges::find_if(fields, [&](const auto& field) { return field.first == key; });
  if (found == fields.end())
    fields.emplace_back(key, value);
  else
    found->second = value;
}

void set(Fields& fields, const Fields& more) {
  fields.reserve(fields.size() + more.size());  // so that the views into the keys stay valid
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < fields.size(); ++i) places.emplace(fields[i].first, i);
  for (const auto& [key, value] : more) {
    const auto [place, is_new] = places.try_emplace(key, fields.size());
    if (is_new)
      fields.emplace_back(key, value);
    else
      fields[place->second].second = value;
  }
}

std::string value(const Fields& fields, std::string_view key) {
  const auto found = std::ranges::find_if(fields, [&](const auto& field) { return field.first == key; });
  return found == fields.end() ? "" : found->second;
}

Fields parse_fields(const std::vector<std::string>& words) {
  Fields fields;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    if (at == 0 || at == std::string::npos) throw UsageError("'" + word + "' is not NAME=VALUE");
    set(fields, word.substr(0, at), word.substr(at + 1));
  }
  return fields;
}

void add_to_record(const std::string& folder, const Fields& fields) {
  const std::string record = folder + "/" + kFolder;
  if (::mkdir(record.c_str(), 0777) != 0 && errno != EEXIST) throw Error(record, 0, errno_text());
  const std::string name = next_name(folder);
  // The temporary file is in the run's folder, outside the record. So the rename changes the time of the run's folder,
  // and the index detects that the record has grown.
  Temporary file(record + "/" + name, 0666, folder);
  Fields clear = fields;
  for (auto& [key, value] : clear) value = withheld(key, value);
  write_all(file.file(), record_text(clear), file.path());
  file.publish();
}

Record record_of(const std::string& folder) {
  Record record;
  std::size_t size = 0;
  for (const auto& [number, name] : files(folder)) {
    const std::string path = folder + "/" + kFolder + "/" + name;
    const Regular file = readable(path);
    if ((size += file.bytes.size()) > kLargestRecord)
      throw Error(path, 0, "the record is larger than " + to_text(std::int64_t{kLargestRecord}) + " bytes");
    merge_record_text(file.bytes, path, record.fields);
    record.mode &= file.mode;
    record.owners.insert(file.owner);
  }
  std::erase_if(record.fields, [](const auto& field) { return field.second.empty(); });
  return record;
}

Fields read_record(const std::string& folder) { return record_of(folder).fields; }

std::string writer_name() {
  static std::atomic<int> count = 0;
  return host_name() + "-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

std::string record_text(const Fields& fields) {
  std::string text(kMagic);
  for (const auto& [key, value] : fields) text += backslashed(key) + "\t" + backslashed(value) + "\n";
  return text;
}

void merge_record_text(std::string_view text, const std::string& name, Fields& fields) {
  if (!text.starts_with(kMagic)) throw Error(name, 1, "is not a record of a run");
  text.remove_prefix(kMagic.size());
  Fields read;
  for (std::int64_t line = 2; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::size_t tab = text.substr(0, end).find('\t');
    if (end == std::string_view::npos || tab == std::string_view::npos)
      throw Error(name, line, "is not a field of a record");
    read.emplace_back(unescaped(text.substr(0, tab)), unescaped(text.substr(tab + 1, end - tab - 1)));
    text.remove_prefix(end + 1);
  }
  if (fields.empty())
    fields = std::move(read);  // a writer does not repeat a key
  else
    set(fields, read);
}

}  // namespace zs::registry
