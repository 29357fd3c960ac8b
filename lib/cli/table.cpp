// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zs::cli {
namespace {

/// Columns on a terminal: bytes that are not UTF-8 continuations. Wide characters count as one.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& given) {
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows) std::transform(row.begin(), row.end(), row.begin(), printable);
  std::vector<std::size_t> widths;
  std::vector<bool> numeric;
  for (std::size_t c = 0; c < header.size(); ++c) {
    std::size_t width = columns(header[c]);
    bool numbers = true, any = false;
    for (const auto& row : rows) {
      width = std::max(width, columns(row[c]));
      if (row[c].empty() || row[c] == "-") continue;
      any = true;
      numbers = numbers && parse_real(row[c].substr(0, row[c].find(' '))).has_value();
    }
    widths.push_back(width);
    numeric.push_back(numbers && any);
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string pad(widths[c] - columns(cells[c]), ' ');
      out += (c ? "  " : "") + (numeric[c] ? pad + cells[c] : cells[c] + pad);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  line(header);
  for (const auto& row : rows) line(row);
  return text;
}

}  // namespace zs::cli
