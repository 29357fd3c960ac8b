// SPDX-License-Identifier: Apache-2.0
#include "plot/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/number.hpp"
#include "plot/axis.hpp"
#include "plot/layout.hpp"

namespace zs::plot {
namespace {

constexpr double kChar = 7.3;             // width of a character of 13 units, generously
constexpr double kLine = 19;              // height of a line of text
constexpr double kStripe = 11;            // length of a stripe where curves coincide
constexpr std::size_t kMarkersUpTo = 40;  // a panel whose curves have no more points shows each of them
constexpr int kPhone = 500;               // narrower figures are laid out for a phone

/// A coordinate: a tenth of a unit is finer than anyone sees.
std::string at(double value) {
  std::array<char, 32> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.1f", value);
  std::string text = buffer.data();
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string ink(std::size_t place, const Theme& theme) {
  return "var(--c" + std::to_string(place % theme.palette.size()) + ")";
}

class Writer {
 public:
  Writer(Figure figure, const Theme& theme, int width) : figure_(std::move(figure)), theme_(theme), width_(width) {}

  std::string text() {
    const bool phone = width_ < kPhone;
    const std::size_t columns = phone ? 1 : std::max<std::size_t>(1, figure_.columns);
    const double gap = 24, each = (width_ - gap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    double top = 0, row_height = 0;
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
      const double left = static_cast<double>(i % columns) * (each + gap);
      row_height = std::max(row_height, panel(figure_.panels[i], i, left, top, each));
      if (i % columns + 1 == columns || i + 1 == figure_.panels.size()) top += row_height + 8, row_height = 0;
    }
    std::string names;
    for (const Panel& panel : figure_.panels)
      names += (names.empty() ? "" : ", ") + (panel.title.empty() ? figure_.title : panel.title);
    return "<svg class=\"figure " + std::string(phone ? "narrow" : "wide") + "\" viewBox=\"0 0 " + at(width_) + " " +
           at(top) + "\" role=\"img\" aria-label=\"" + escaped(names) + "\">\n" + out_.str() + "</svg>\n";
  }

 private:
  const Figure figure_;
  const Theme& theme_;
  double width_;
  std::ostringstream out_;

  void words(const std::string& text, double x, double y, const std::string& anchor, const std::string& classes) {
    out_ << "<text x=\"" << at(x) << "\" y=\"" << at(y) << "\""
         << (anchor == "start" ? "" : " text-anchor=\"" + anchor + "\"")
         << (classes.empty() ? "" : " class=\"" + classes + "\"") << ">" << escaped(text) << "</text>\n";
  }
  void rule(double x0, double y0, double x1, double y1, const std::string& classes) {
    out_ << "<path class=\"" << classes << "\" d=\"M" << at(x0) << " " << at(y0) << "L" << at(x1) << " " << at(y1)
         << "\"/>\n";
  }

  /// Draws a panel and returns its height.
  double panel(const Panel& panel, std::size_t index, double left, double top, double width) {
    double y = top;
    if (!panel.title.empty()) words(panel.title, left, y + 15, "start", "title"), y += 1.4 * kLine;
    if (!panel.cells.empty())
      y = heat_map(panel, left, y, width);
    else if (!panel.bars.empty())
      y = bars(panel, left, y, width);
    else
      y = curves(panel, index, left, y, width);
    for (const std::string& note : panel.notes) {
      for (const std::string& line : wrapped(note, static_cast<std::size_t>(width / 6.6)))
        words(line, left, y += 17, "start", "quiet");
    }
    return y + 8 - top;
  }

  // ---- curves -------------------------------------------------------------------------------------------------------
  double curves(const Panel& panel, std::size_t index, double left, double top, double width) {
    const Range xs = x_range(panel), ys = y_axis(panel);
    if (xs.empty() || ys.empty()) {
      words("no finite value to draw", left, top + 20, "start", "quiet");
      return top + 30;
    }
    const double height = width < kPhone ? 260 : std::min(380.0, 0.45 * width);
    const std::vector<Tick> y_ticks = ticks(ys.low, ys.high, static_cast<int>(height / 45), panel.log_y);
    std::size_t longest = 1;
    for (const Tick& tick : y_ticks) longest = std::max(longest, length(tick.label));
    words(panel.y_label, left, top + 14, "start", "quiet");
    const double x0 = left + static_cast<double>(longest) * kChar + 10, x1 = left + width - 12, y0 = top + 26,
                 y1 = y0 + height;
    const auto px = [&](double x) { return x0 + (x1 - x0) * share(x, xs, panel.log_x); };
    const auto py = [&](double y) { return y1 - (y1 - y0) * share(y, ys, panel.log_y); };
    for (const Tick& tick : y_ticks) {
      rule(x0, py(tick.at), x1, py(tick.at), "grid");
      words(tick.label, x0 - 7, py(tick.at) + 4.5, "end", "tick");
    }
    for (const Tick& tick : x_ticks(panel, xs, static_cast<int>((x1 - x0) / 90))) {
      rule(px(tick.at), y1, px(tick.at), y1 + 5, "axis");
      words(tick.label, px(tick.at), y1 + 19, "middle", "tick");
    }
    rule(x0, y1, x1, y1, "axis");
    words(panel.x_label, (x0 + x1) / 2, y1 + 37, "middle", "quiet");
    for (const Series& series : panel.series) {
      if (!series.low.empty()) band(series, px, py, panel.log_y);
    }
    std::size_t most = 0;
    for (const Series& series : panel.series) most = std::max(most, series.x.size());
    for (const Series& series : panel.series) curve(series, px, py, panel.log_y, most <= kMarkersUpTo);
    out_ << "<g class=\"pointer\" data-panel=\"" << index << "\" data-x0=\"" << at(x0) << "\" data-x1=\"" << at(x1)
         << "\" data-low=\"" << zs::to_text(xs.low) << "\" data-high=\"" << zs::to_text(xs.high) << "\""
         << (panel.log_x ? " data-log=\"1\"" : "") << "><path class=\"hair\" d=\"M0 " << at(y0) << "V" << at(y1)
         << "\"/><rect x=\"" << at(x0) << "\" y=\"" << at(y0) << "\" width=\"" << at(x1 - x0) << "\" height=\""
         << at(y1 - y0) << "\"/></g>\n";
    return legend(panel, left, y1 + 48, width);
  }

  double legend(const Panel& panel, double left, double top, double width) {
    std::size_t longest = 1;
    for (const Series& one : panel.series) longest = std::max(longest, length(legend_name(one)));
    const double entry = std::min(width, static_cast<double>(longest) * kChar + 44);
    const auto columns = std::clamp<std::size_t>(static_cast<std::size_t>(width / entry), 1,
                                                 std::max<std::size_t>(1, panel.series.size()));
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      const double x = left + entry * static_cast<double>(i % columns),
                   y = top + kLine * static_cast<double>(i / columns) + 10;
      out_ << "<rect x=\"" << at(x) << "\" y=\"" << at(y - 7) << "\" width=\"22\" height=\"5\" rx=\"2\" fill=\""
           << ink(panel.series[i].colour, theme_) << "\"/>";
      words(shortened(legend_name(panel.series[i]), static_cast<std::size_t>((width - 36) / kChar)), x + 29, y, "start",
            panel.series[i].note.empty() ? "" : "bad");
    }
    return top + kLine * static_cast<double>((panel.series.size() + columns - 1) / columns);
  }

  /// The points that a drawing of this size can show: the first, the extremes and the last of each unit across.
  template <typename X>
  static std::vector<std::size_t> visible(const Series& series, const X& px) {
    std::vector<std::size_t> kept;
    for (std::size_t start = 0, end = 0; start < series.x.size(); start = end) {
      std::size_t low = start, high = start;
      while (end < series.x.size() && std::floor(px(series.x[end])) == std::floor(px(series.x[start]))) {
        if (!(series.y[end] >= series.y[low])) low = end;
        if (!(series.y[end] <= series.y[high])) high = end;
        ++end;
      }
      for (const std::size_t row : {start, std::min(low, high), std::max(low, high), end - 1}) {
        if (kept.empty() || kept.back() < row) kept.push_back(row);
      }
    }
    return kept;
  }

  template <typename X, typename Y>
  void curve(const Series& series, const X& px, const Y& py, bool log, bool markers) {
    std::string path, dots;
    bool pen = false;
    std::size_t last = series.x.size();
    const auto drawable = [&](std::size_t row) { return std::isfinite(series.y[row]) && (!log || series.y[row] > 0); };
    const std::vector<std::size_t> rows = visible(series, px);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t row = rows[i];
      if (!drawable(row)) {
        pen = false;
        continue;
      }
      path += (pen ? "L" : "M") + at(px(series.x[row])) + " " + at(py(series.y[row]));
      const bool alone = !pen && (i + 1 == rows.size() || !drawable(rows[i + 1]));
      if (series.points || alone || (markers && row % series.layers == series.layer)) {
        dots += "<circle cx=\"" + at(px(series.x[row])) + "\" cy=\"" + at(py(series.y[row])) + "\" r=\"3\"/>";
      }
      pen = true;
      last = row;
    }
    if (path.empty()) return;
    const std::string colour = ink(series.colour, theme_);
    out_ << "<g stroke=\"" << colour << "\" fill=\"" << colour << "\">";
    if (!series.points) {
      out_ << "<path class=\"curve\"";
      if (series.layers > 1) out_ << " stroke-width=\"3.4\"";
      if (series.layer > 0) {
        out_ << " stroke-dasharray=\"" << at(kStripe * static_cast<double>(series.layers - series.layer)) << " "
             << at(kStripe * static_cast<double>(series.layer)) << "\" stroke-linecap=\"butt\"";
      }
      out_ << " d=\"" << path << "\"/>";
    }
    out_ << (dots.empty() ? "" : "<g stroke=\"none\">" + dots + "</g>") << "</g>\n";
    if (series.note.empty() || last == series.x.size()) return;
    const double x = px(series.x[last]), y = py(series.y[last]);
    out_ << "<path class=\"cross\" d=\"M" << at(x - 5) << " " << at(y - 5) << "l10 10m0-10l-10 10\"/>\n";
  }

  template <typename X, typename Y>
  void band(const Series& series, const X& px, const Y& py, bool log) {
    std::string there, back;
    for (const std::size_t row : visible(series, px)) {
      if (!std::isfinite(series.low[row]) || !std::isfinite(series.high[row]) || (log && series.low[row] <= 0))
        continue;
      const std::string x = at(px(series.x[row]));
      there += (there.empty() ? "M" : "L") + x + " " + at(py(series.high[row]));
      back = "L" + x + " " + at(py(series.low[row])) + back;
    }
    if (!there.empty())
      out_ << "<path class=\"band\" fill=\"" << ink(series.colour, theme_) << "\" d=\"" << there << back << "Z\"/>\n";
  }

  template <typename X>
  void whiskers(const Bar& bar, const X& px, double y) {
    if (!std::isfinite(bar.low) || !std::isfinite(bar.high)) return;
    const std::string low = at(px(bar.low)), high = at(px(bar.high)), end = at(y - 4);
    for (const char* const style : {"halo", "whisker"}) {
      out_ << "<path class=\"" << style << "\" d=\"M" << low << " " << at(y) << "H" << high << "M" << low << " " << end
           << "v8M" << high << " " << end << "v8\"/>";
    }
    out_ << "\n";
  }

  // ---- bars ---------------------------------------------------------------------------------------------------------
  double bars(const Panel& panel, double left, double top, double width) {
    const bool above = width < kPhone;
    std::size_t names = 1;
    for (const Bar& bar : panel.bars) names = std::max(names, std::min<std::size_t>(length(bar.name), 40));
    const double x0 = above ? left + 2 : left + static_cast<double>(names) * kChar + 12, x1 = left + width - 8;
    const BarAxis axis = bar_axis(panel, kChar, x1 - x0);
    const double pitch = above ? 44 : 32, thick = 20, foot = top + 4 + pitch * static_cast<double>(panel.bars.size());
    const auto px = [&](double value) { return x0 + (x1 - x0) * (value - axis.low) / (axis.high - axis.low); };
    for (const Tick& tick : ticks(axis.low, axis.high, static_cast<int>((x1 - x0) / 90), false)) {
      rule(px(tick.at), top + 4, px(tick.at), foot, "grid");
      words(tick.label, px(tick.at), foot + 17, px(tick.at) < x0 + 8 && above ? "start" : "middle", "tick");
    }
    for (std::size_t i = 0; i < panel.bars.size(); ++i) {
      const Bar& bar = panel.bars[i];
      const double y = top + 4 + pitch * static_cast<double>(i) + (above ? 19 : 6), middle = y + thick / 2 + 4.5;
      const std::string name = shortened(bar.name, above ? static_cast<std::size_t>(width / kChar) : 40);
      if (above)
        words(name, x0, y - 5, "start", "");
      else
        words(name, x0 - 8, middle, "end", "");
      double label = x0;
      if (panel.boxes) whiskers(bar, px, y + thick / 2);
      if (std::isfinite(bar.value)) {
        label = px(bar_reach(bar));
        const double start = std::max(x0, px(bar.from));
        out_ << "<rect x=\"" << at(start) << "\" y=\"" << at(y) << "\" width=\""
             << at(std::max(0.0, px(bar.value) - start)) << "\" height=\"" << at(thick) << "\" fill=\""
             << ink(bar.colour, theme_) << "\"" << (bar.failed ? " opacity=\".35\"" : "") << "/>\n";
        if (std::isfinite(bar.inner)) rule(px(bar.inner), y, px(bar.inner), y + thick, "mark");
      }
      if (!panel.boxes) whiskers(bar, px, y + thick / 2);
      if (!bar.dots.empty()) {
        out_ << "<g fill=\"" << ink(bar.colour, theme_) << "\">";
        for (const double dot : bar.dots)
          out_ << "<circle cx=\"" << at(px(dot)) << "\" cy=\"" << at(y + thick / 2) << "\" r=\"2.2\"/>";
        out_ << "</g>\n";
      }
      words(bar.label, label + 8, middle, "start", bar.failed ? "value bad" : "value");
    }
    rule(x0, foot, x1, foot, "axis");
    words(panel.x_label, (x0 + x1) / 2, foot + 35, "middle", "quiet");
    return foot + 38;
  }

  // ---- heat map -----------------------------------------------------------------------------------------------------
  double heat_map(const Panel& panel, double left, double top, double width) {
    std::size_t names = length(panel.y_label);
    for (const std::string& row : panel.rows) names = std::max(names, std::min<std::size_t>(length(row), 30));
    const double x0 = left + static_cast<double>(names) * kChar + 12, tall = 40;
    const double wide = (left + width - x0) / static_cast<double>(std::max<std::size_t>(1, panel.columns.size()));
    const double y0 = top + 2 * kLine + 6;
    words(panel.y_label, x0 - 8, y0 - 8, "end", "quiet");
    words(panel.x_label, (x0 + left + width) / 2, top + 14, "middle", "quiet");
    for (std::size_t i = 0; i < panel.columns.size(); ++i) {
      words(shortened(panel.columns[i], static_cast<std::size_t>(wide / kChar)),
            x0 + wide * (static_cast<double>(i) + 0.5), y0 - 8, "middle", "");
    }
    for (std::size_t i = 0; i < panel.rows.size(); ++i) {
      words(shortened(panel.rows[i], 30), x0 - 8, y0 + tall * (static_cast<double>(i) + 0.5) + 4.5, "end", "");
    }
    Range range;
    for (const Cell& cell : panel.cells) range.include(cell.value);
    for (const Cell& cell : panel.cells) {
      const double x = x0 + wide * static_cast<double>(cell.column), y = y0 + tall * static_cast<double>(cell.row);
      const double share =
          std::isfinite(cell.value) && range.low < range.high ? (cell.value - range.low) / (range.high - range.low) : 0;
      out_ << "<rect class=\"cell\" x=\"" << at(x + 1) << "\" y=\"" << at(y + 1) << "\" width=\"" << at(wide - 2)
           << "\" height=\"" << at(tall - 2) << "\" fill=\"var(--c0)\" fill-opacity=\""
           << (std::isfinite(cell.value) ? at(0.1 + 0.8 * share) : "0") << "\"/>";
      if (cell.best) {
        out_ << "<rect class=\"best\" x=\"" << at(x + 2) << "\" y=\"" << at(y + 2) << "\" width=\"" << at(wide - 4)
             << "\" height=\"" << at(tall - 4) << "\"/>";
      }
      words(cell.label, x + wide / 2, y + tall / 2 + 4.5, "middle", share > 0.5 ? "inverse" : "");
    }
    return y0 + tall * static_cast<double>(panel.rows.size()) + 4;
  }
};

}  // namespace

std::string svg(const Figure& figure, const Theme& theme, int width) {
  return Writer(drawable(figure), theme, width).text();
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') result += c;
    }
  }
  return result;
}

}  // namespace zs::plot
