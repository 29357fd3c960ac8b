// SPDX-License-Identifier: Apache-2.0
// A table for people: columns aligned, numbers to the right.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace zs::cli {

/// `rows` under `header`, two blanks between columns. A column whose every cell is a number (or empty) is
/// aligned right. Cells go through printable(); lines have no trailing blanks. Where the lines would have more than
/// `width` characters, the columns that do not fit follow in further tables, each with the first column; 0: no limit.
/// REQUIRES: every row is as long as the header.
std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                  std::size_t width = 0);

/// Characters in a line of the terminal that stdout is; 80 where it does not say.
std::size_t terminal_width();

}  // namespace zs::cli
