// SPDX-License-Identifier: Apache-2.0
// Documents: what is tokenised one by one. A text file is one; a file of JSON Lines has one in each line.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace zs::token {

/// Whether a file's name says JSON Lines: *.jsonl, *.ndjson, also with .gz, .zst.
bool names_json_lines(std::string name);

/// The documents of a file, or of stdin for "-"; gzip and Zstandard are read through.
class DocumentReader {
 public:
  /// JSON Lines if `text_key` is given, and where names_json_lines(path), with the key "text".
  DocumentReader(const std::string& path, const std::string& text_key);
  /// The next document; false at the end. Throws Error with file and line at what is no JSON object with that text.
  bool next(std::string& document);
  /// The next object of JSON Lines, whatever is in it; false at the end. Throws Error as next() does.
  bool next_object(nlohmann::ordered_json& object);
  /// The file's name, as errors have it, and the line of what was read last, from 1.
  const std::string& name() const { return input_.name(); }
  std::int64_t line() const { return line_; }

 private:
  Input input_;
  std::string key_;  // empty: text
  std::int64_t line_ = 0;
  std::string buffer_;
  std::size_t at_ = 0;
  bool end_ = false;
  bool next_line(std::string& line);
};

/// The files of one part of a data set.
struct Division {
  std::string name;  ///< "train", "val", "test"; "" for all of a folder that is not divided
  std::vector<std::string> files;
};

/// What a folder holds: for each division the files named so ("train.txt", "wiki.train.raw", "train.jsonl.zst";
/// "valid", "validation" and "dev" are "val") and those in a folder named so, in the order of their paths; else every
/// file below it. No links, no hidden files. `left_out` gets files that belong to no division where there are some.
/// Throws Error with the path where it holds no file.
std::vector<Division> divisions(const std::string& folder, std::vector<std::string>& left_out);

}  // namespace zs::token
