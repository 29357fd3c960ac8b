// SPDX-License-Identifier: Apache-2.0
#include "token/document.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "token/unicode.hpp"

namespace zs::token {
namespace {

namespace fs = std::filesystem;

/// "val" for "wiki.valid.raw" and "validation-00000-of-00001.jsonl": the first part of a name between dots that names a
/// division, alone or before a number; "" if there is none.
std::string division_of(std::string_view name) {
  while (!name.empty()) {
    std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    const std::size_t number = std::min(part.find_first_of("-_"), part.size());
    const std::string_view rest = part.substr(number);
    if (rest.size() > 1 && rest[1] >= '0' && rest[1] <= '9') part.remove_suffix(rest.size());
    if (part == "train" || part == "test") return std::string(part);
    if (part == "val" || part == "valid" || part == "validation" || part == "dev") return "val";
  }
  return "";
}

}  // namespace

bool names_json_lines(std::string name) {
  name = uncompressed_name(name);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

DocumentReader::DocumentReader(const std::string& path, const std::string& text_key)
    : input_(path),
      key_(!text_key.empty()        ? text_key
           : names_json_lines(path) ? "text"
                                    : "") {}

bool DocumentReader::next_line(std::string& line) {
  while (true) {
    const std::size_t end = buffer_.find('\n', at_);
    if (end != std::string::npos || (end_ && at_ < buffer_.size())) {
      line = buffer_.substr(at_, end == std::string::npos ? end : end - at_);
      at_ = end == std::string::npos ? buffer_.size() : end + 1;
      ++line_;
      return true;
    }
    if (end_) return false;
    buffer_.erase(0, at_);
    at_ = buffer_.size();
    constexpr std::size_t kMore = 1 << 20;
    buffer_.resize(at_ + kMore);
    const std::size_t count = input_.read(buffer_.data() + at_, kMore);
    buffer_.resize(at_ + count);
    end_ = count == 0;
    at_ = 0;
    if (buffer_.size() > most_in_memory()) throw Error(input_.name(), line_ + 1, "a line without an end");
  }
}

bool DocumentReader::next(std::string& document) {
  if (key_.empty()) {
    if (end_) return false;
    end_ = true;
    document = input_.read_all();
    if (document.starts_with("PAR1"))
      throw Error(input_.name(), 0,
                  "is a Parquet file: make JSON Lines of it (pandas: read_parquet(FILE).to_json(\"train.jsonl\", "
                  "orient=\"records\", lines=True))");
    return true;
  }
  nlohmann::ordered_json json;
  if (!next_object(json)) return false;
  const auto wrong = [&](const std::string& what) { throw Error(input_.name(), line_, what); };
  const auto at = json.find(key_);
  if (at == json.end()) wrong("has no \"" + printable(key_) + "\": name the field of the text by --text_key");
  if (!at->is_string()) wrong("\"" + printable(key_) + "\" is not text");
  document = at->get<std::string>();
  return true;
}

bool DocumentReader::next_object(nlohmann::ordered_json& object) {
  std::string line, room;
  do {
    if (!next_line(line)) return false;
  } while (line.find_first_not_of(" \t\r") == std::string::npos);
  const auto wrong = [&](const std::string& what) { throw Error(input_.name(), line_, what); };
  if (as_utf8(line, room) != line) wrong("is not UTF-8, as JSON must be: convert the file first, with iconv -t UTF-8");
  object = json_of<nlohmann::ordered_json>(line, input_.name() + ":" + to_text(line_));
  if (!object.is_object()) wrong("is not a JSON object");
  return true;
}

std::vector<Division> divisions(const std::string& folder, std::vector<std::string>& left_out) {
  std::vector<fs::path> files = files_below(folder, /*hidden=*/false);
  std::erase_if(files, [](const fs::path& file) { return fs::is_symlink(file); });
  if (files.empty()) throw Error(folder, 0, "holds no file");
  const auto arrow = std::ranges::find_if(files, [](const fs::path& f) { return f.extension() == ".arrow"; });
  if (arrow != files.end()) {
    const bool parts = fs::exists(fs::path(folder) / "dataset_dict.json");
    throw Error(folder, 0,
                "was saved by Hugging Face's datasets: its text is in Arrow files (" + arrow->filename().string() +
                    "), and its JSON only describes them. Make JSON Lines of it: python3 -c 'import datasets; " +
                    (parts ? "[part.to_json(name + \".jsonl\") for name, part in datasets.load_from_disk(\"" + folder +
                                 "\").items()]'"
                           : "datasets.load_from_disk(\"" + folder + "\").to_json(\"train.jsonl\")'"));
  }
  std::map<std::string, Division> found;
  for (const fs::path& file : files) {
    std::string name;
    for (const fs::path& part : file.lexically_relative(folder)) {
      if (name.empty()) name = division_of(part.string());
    }
    found[name].files.push_back(file.string());
  }
  std::vector<Division> parts;
  for (const char* name : {"train", "val", "test"}) {
    if (const auto at = found.find(name); at != found.end()) parts.push_back({name, at->second.files});
  }
  if (parts.empty()) return {{"", found[""].files}};
  left_out = found[""].files;
  return parts;
}

}  // namespace zs::token
