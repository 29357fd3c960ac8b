// SPDX-License-Identifier: Apache-2.0
#include "registry/record.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/number.hpp"

namespace zs::registry {
namespace {

constexpr std::string_view kMagic = "#zs-record 1\n";
constexpr const char* kFolder = "record";

/// The names of the record's files in the order in which they hold; empty where there is no record.
std::vector<std::string> files(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir((folder + "/" + kFolder).c_str()), ::closedir);
  if (!open && errno != ENOENT && errno != ENOTDIR) throw Error(folder + "/" + kFolder, 0, errno_text());
  while (const dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// "00000003-node07-1234-0.tsv": first what orders it, then what makes it unique.
std::string next_name(const std::string& folder) {
  const std::vector<std::string> names = files(folder);
  const std::int64_t last =
      names.empty() ? 0 : parse_int(std::string_view(names.back()).substr(0, names.back().find('-'))).value_or(0);
  std::array<char, 24> number;
  std::snprintf(number.data(), number.size(), "%08lld-", static_cast<long long>(last + 1));
  return number.data() + writer_name() + ".tsv";
}

void write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(path, 0, "write: " + errno_text());
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
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

std::string content(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error(path, 0, errno_text());
  std::string bytes;
  std::array<char, 1 << 14> buffer;
  ssize_t count = 0;
  while ((count = ::read(file, buffer.data(), buffer.size())) > 0)
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  const std::string failure = count < 0 ? errno_text() : "";
  ::close(file);
  if (count < 0) throw Error(path, 0, failure);
  return bytes;
}

}  // namespace

void set(Fields& fields, std::string_view key, std::string_view value) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == key; });
  if (found == fields.end())
    fields.emplace_back(key, value);
  else
    found->second = value;
}

std::string value(const Fields& fields, std::string_view key) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == key; });
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
  // The temporary lies in the run's folder, not in the record: so the rename changes the time of the run's folder, by
  // which the index sees that the record has grown.
  const std::string temporary = folder + "/." + name;
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) throw Error(temporary, 0, errno_text());
  try {
    write_all(file, record_text(fields), temporary);
    if (::fsync(file) != 0) throw Error(temporary, 0, "sync: " + errno_text());
    if (::rename(temporary.c_str(), (record + "/" + name).c_str()) != 0)
      throw Error(record + "/" + name, 0, "rename: " + errno_text());
  } catch (...) {
    ::close(file);
    ::unlink(temporary.c_str());
    throw;
  }
  if (::close(file) != 0) throw Error(record + "/" + name, 0, "close: " + errno_text());
}

Fields read_record(const std::string& folder) {
  Fields fields;
  for (const std::string& name : files(folder)) {
    const std::string path = folder + "/" + kFolder + "/" + name;
    merge_record_text(content(path), path, fields);
  }
  std::erase_if(fields, [](const auto& field) { return field.second.empty(); });
  return fields;
}

std::string writer_name() {
  static std::atomic<int> count = 0;
  return host_name() + "-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else
      out += c;
  }
  return out;
}

std::string record_text(const Fields& fields) {
  std::string text(kMagic);
  for (const auto& [key, value] : fields) text += escaped(key) + "\t" + escaped(value) + "\n";
  return text;
}

void merge_record_text(std::string_view text, const std::string& name, Fields& fields) {
  if (!text.starts_with(kMagic)) throw Error(name, 1, "is no record of a run");
  text.remove_prefix(kMagic.size());
  const bool first = fields.empty();  // then keys need not be looked for, since a writer does not repeat them
  for (std::int64_t line = 2; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::size_t tab = text.substr(0, end).find('\t');
    if (end == std::string_view::npos || tab == std::string_view::npos)
      throw Error(name, line, "is no field of a record");
    const std::string key = unescaped(text.substr(0, tab)), value = unescaped(text.substr(tab + 1, end - tab - 1));
    if (first)
      fields.emplace_back(key, value);
    else
      set(fields, key, value);
    text.remove_prefix(end + 1);
  }
}

}  // namespace zs::registry
