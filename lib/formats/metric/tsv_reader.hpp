// SPDX-License-Identifier: Apache-2.0
// Reads the text form: sections with a header each; rows of several runs may be mixed.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "metric/table.hpp"

namespace zs::metric {

/// Reads a text, which may be several concatenated streams. Errors carry `name` and the line.
class TsvReader {
 public:
  /// `first_line` is the number of the first line of `text` within the input.
  TsvReader(std::string name, std::int64_t first_line) : name_(std::move(name)), line_(first_line - 1) {}

  /// The runs, in order of first appearance, each canonical(). REQUIRES: called once.
  std::vector<Run> read(std::string_view text);
  /// The line where each run first appeared, parallel to the result of read().
  const std::vector<std::int64_t>& lines() const { return lines_; }

 private:
  struct HeaderColumn {
    std::string name, unit;
    std::optional<Type> type;  ///< nothing: inferred from the values
  };
  struct Building {
    Run run;
    int stream = 0;  ///< number of its "#zs-metrics 1" line
    std::size_t rows = 0;
    std::vector<bool> untyped;        ///< parallel to its columns
    int section = -1;                 ///< the header of `places`
    std::vector<std::size_t> places;  ///< header column -> its column
  };

  [[noreturn]] void fail(const std::string& what) const;
  std::string plain(std::string_view field) const;
  void line(std::string_view line);
  void comment(std::string_view line);
  void attribute(std::string_view text);
  void declaration(std::string_view text);
  void header(std::string_view line);
  void row(std::string_view line);
  Building& building(const std::string& run);
  void place(Building& target);
  bool is_header(std::string_view line) const;
  void refuse_early_rows();

  std::string name_;
  std::int64_t line_;
  int stream_ = 0, section_ = 0;
  bool begun_ = false, has_header_ = false, cut_off_ = false;
  std::vector<HeaderColumn> header_;
  std::map<std::string, HeaderColumn, std::less<>> declared_;
  std::vector<std::pair<std::int64_t, std::string_view>> early_;  // rows before their header, with their lines
  std::vector<Building> runs_;
  std::vector<std::int64_t> lines_;
  std::unordered_map<std::string, std::size_t> places_;
  std::string last_field_;  // of the previous row, and its run
  std::size_t last_run_ = 0;
};

}  // namespace zs::metric
