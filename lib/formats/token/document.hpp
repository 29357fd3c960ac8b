// SPDX-License-Identifier: Apache-2.0
// Documents, the units of tokenizing: a text file is one; a file of JSON Lines has one per line.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace zs::token {

/// Whether the file name has an extension of JSON Lines: *.jsonl, *.ndjson, also with .gz, .zst.
bool names_json_lines(std::string name);

/// The documents of a file, or of stdin for "-"; gzip and Zstandard are decompressed.
class DocumentReader {
 public:
  /// JSON Lines if `text_key` is given, or if names_json_lines(path), then with the key "text".
  DocumentReader(const std::string& path, const std::string& text_key);
  /// Reads the next document; false at the end. Throws Error with file and line if it is not a JSON object with that
  /// text.
  bool next(std::string& document);
  /// Reads the next object of JSON Lines with any content; false at the end. Throws Error as next() does.
  bool next_object(nlohmann::ordered_json& object);
  /// The file's name in errors, and the line of the last document, from 1.
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
  std::string name;  ///< "train", "val", "test"; "" for all files of an undivided folder
  std::vector<std::string> files;
};

/// Finds the divisions of a folder: files with such a name ("train.txt", "wiki.train.raw", "train.jsonl.zst"; "valid",
/// "validation" and "dev" are "val") and files in a folder of such a name, in the order of their paths. Without any,
/// all files below the folder are one division. Ignores links and hidden files. If there are divisions, `left_out` gets
/// the files of none. Throws Error with the path if there is no file.
std::vector<Division> divisions(const std::string& folder, std::vector<std::string>& left_out);

}  // namespace zs::token
