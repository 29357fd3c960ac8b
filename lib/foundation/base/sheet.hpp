// SPDX-License-Identifier: Apache-2.0
// Rows of text under a header, for printing: aligned for people, as tab-separated text, CSV or JSON.
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace zs {

struct Sheet {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  ///< each as long as the header
};

/// Tab-separated, with a header. In cells, tabs, line ends and backslashes are escaped as \t, \n, \r, \\, and other
/// characters that control a terminal as \x1B or \u202E.
std::string to_tsv(const Sheet& sheet);
/// RFC 4180, but lines end in a line feed only, and a text that a spreadsheet would read as a formula gets a leading '.
std::string to_csv(const Sheet& sheet);
/// A list of objects; empty cells are left out, numbers and truth values are unquoted, nan and inf are texts.
nlohmann::ordered_json to_objects(const Sheet& sheet);
std::string to_json(const Sheet& sheet);
/// One such object.
std::string to_json(const std::vector<std::string>& names, const std::vector<std::string>& values);

/// `text` as a cell of a CSV line.
std::string csv_cell(const std::string& text);

/// For people: rounds numbers of many digits to six, shortens long texts, and removes columns from the right until the
/// lines (with two blanks between columns) have at most `width` characters; the first column always stays. Sets
/// `left_out` to the number of removed columns. A `width` of 0 is no limit.
Sheet fitted(const Sheet& sheet, std::size_t width, std::size_t& left_out);

/// For people, two blanks between columns. A column of numbers (or empty cells) is aligned right. Cells go through
/// printable(); lines have no trailing blanks. If lines would exceed `width` characters, the columns that do not fit
/// follow in further tables, each with the first column; 0: no limit.
std::string aligned(const Sheet& sheet, std::size_t width = 0);

}  // namespace zs
