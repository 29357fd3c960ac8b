// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zs::cli {
std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& given,
                  std::size_t width) {
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows) std::transform(row.begin(), row.end(), row.begin(), printable);
  std::vector<std::size_t> widths;
  std::vector<bool> numeric;
  for (std::size_t c = 0; c < header.size(); ++c) {
    std::size_t width = characters(header[c]);
    bool numbers = true, any = false;
    for (const auto& row : rows) {
      width = std::max(width, characters(row[c]));
      if (row[c].empty() || row[c] == "-") continue;
      any = true;
      numbers = numbers && parse_real(row[c].substr(0, row[c].find(' '))).has_value();
    }
    widths.push_back(width);
    numeric.push_back(numbers && any);
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells, std::size_t from, std::size_t to) {
    std::string out;
    for (std::size_t c = 0; c < to; c = c == 0 ? std::max<std::size_t>(from, 1) : c + 1) {
      const std::string pad(widths[c] - characters(cells[c]), ' ');
      out += (c ? "  " : "") + (numeric[c] ? pad + cells[c] : cells[c] + pad);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  for (std::size_t from = 0, to = 0; from < header.size(); from = to) {
    std::size_t used = from > 0 ? widths[0] : 0;
    for (to = from; to < header.size(); ++to) {
      used += widths[to] + (to > 0 ? 2 : 0);
      if (width > 0 && used > width && to > std::max<std::size_t>(from, 1)) break;
    }
    if (from > 0) text += "\n";
    line(header, from, to);
    for (const auto& row : rows) line(row, from, to);
  }
  return text;
}

std::size_t terminal_width() {
  winsize window{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
}

}  // namespace zs::cli
