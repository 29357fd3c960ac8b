// SPDX-License-Identifier: Apache-2.0
// A table for people: columns aligned, numbers to the right.
#pragma once
#include <string>
#include <vector>

namespace zs::cli {

/// `rows` under `header`, two blanks between columns. A column whose every cell is a number (or empty) is
/// aligned right. Cells go through printable(); lines have no trailing blanks. REQUIRES: every row is as long as the header.
std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

}  // namespace zs::cli
