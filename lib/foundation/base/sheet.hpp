// SPDX-License-Identifier: Apache-2.0
// Rows of text under a header, to be printed: aligned for people, as tab-separated text, CSV or JSON.
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

/// Tab-separated, a header first. In cells, tabs, line ends and backslashes are written as \t, \n, \r, \\, and what
/// else would steer a terminal as \x1B or \u202E.
std::string to_tsv(const Sheet& sheet);
/// RFC 4180, but lines end in a line feed alone, and a text that a spreadsheet would take for a formula has a ' in
/// front.
std::string to_csv(const Sheet& sheet);
/// A list of objects; empty cells are left out, numbers and truth values are such, nan and inf are texts.
nlohmann::ordered_json to_objects(const Sheet& sheet);
std::string to_json(const Sheet& sheet);
/// One such object.
std::string to_json(const std::vector<std::string>& names, const std::vector<std::string>& values);

/// `text` as a cell of a CSV line.
std::string csv_cell(const std::string& text);

/// For people: numbers of many digits rounded to six, long texts shortened, and columns left out from the right until
/// the lines (with two blanks between columns) have at most `width` characters; the first column always stays.
/// `left_out` is set to how many. A `width` of 0 is no limit.
Sheet fitted(const Sheet& sheet, std::size_t width, std::size_t& left_out);

/// For people, two blanks between columns. A column whose every cell is a number (or empty) is aligned right. Cells go
/// through printable(); lines have no trailing blanks. Where the lines would have more than `width` characters, the
/// columns that do not fit follow in further tables, each with the first column; 0: no limit.
std::string aligned(const Sheet& sheet, std::size_t width = 0);

}  // namespace zs
