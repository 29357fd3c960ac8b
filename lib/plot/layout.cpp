// SPDX-License-Identifier: Apache-2.0
#include "plot/layout.hpp"

#include <algorithm>

#include "plot/axis.hpp"

namespace zs::plot {

std::size_t Layout::chars(double pixels) const {
  return static_cast<std::size_t>(std::max(pixels / char_width(), 10.0));
}

std::vector<std::string> Layout::note_lines(const Panel& panel, double width) const {
  std::vector<std::string> lines;
  for (const std::string& note : panel.notes) {
    for (const std::string& line : wrapped(note, static_cast<std::size_t>((width - 40) / (0.64 * theme_.font_size))))
      lines.push_back(line);
  }
  return lines;
}

std::string legend_name(const Series& series) {
  return series.name + (series.note.empty() ? "" : " (" + series.note + ")");
}

std::size_t Layout::legend_columns(const Panel& panel, double width) const {
  std::size_t longest = 1;
  for (const Series& series : panel.series) longest = std::max(longest, length(legend_name(series)));
  const double entry = static_cast<double>(std::min(longest, chars(width - 70))) * char_width() + 44;
  return std::clamp<std::size_t>(static_cast<std::size_t>((width - 28) / entry), 1,
                                 std::max<std::size_t>(1, panel.series.size()));
}

std::size_t Layout::legend_rows(const Panel& panel, double width) const {
  if (panel.series.empty()) return 0;
  const std::size_t columns = legend_columns(panel, width);
  return (panel.series.size() + columns - 1) / columns;
}

double Layout::title_height(const Panel& panel) const {
  return panel.title.empty() ? 0.3 * line_height() : 1.9 * line_height();
}

double Layout::height(const Panel& panel, double width) const {
  double axes = theme_.height;
  if (is_bars(panel)) axes = 36.0 * static_cast<double>(panel.bars.size()) + 3 * line_height();
  if (is_map(panel)) axes = 40.0 * static_cast<double>(panel.rows.size()) + 3 * line_height();
  if (!is_bars(panel) && !is_map(panel))
    axes += 3 * line_height() + 1.25 * line_height() * static_cast<double>(legend_rows(panel, width));
  const std::size_t notes = note_lines(panel, width).size();
  return title_height(panel) + axes + line_height() * (0.6 + static_cast<double>(notes));
}

}  // namespace zs::plot
