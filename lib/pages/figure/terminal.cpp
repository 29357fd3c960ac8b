// SPDX-License-Identifier: Apache-2.0
#include "figure/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/host.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "figure/axis.hpp"
#include "figure/canvas.hpp"

namespace zs::figure {
namespace {

std::string padded_left(const std::string& text, std::size_t width) {
  const std::size_t size = characters(text);
  return size < width ? std::string(width - size, ' ') + text : text;
}
std::string padded_right(const std::string& text, std::size_t width) {
  const std::size_t size = characters(text);
  return size < width ? text + std::string(width - size, ' ') : text;
}

/// "#RRGGBB" as the nearest colour of the 6 x 6 x 6 cube that 256-colour terminals have.
int cube_colour(const std::string& rgb) {
  int code = 16;
  for (int channel = 0; channel < 3; ++channel) {
    const long level = std::strtol(rgb.substr(1 + 2 * static_cast<std::size_t>(channel), 2).c_str(), nullptr, 16);
    const long step = level < 48 ? 0 : level < 115 ? 1 : (level - 35) / 40;
    code += static_cast<int>(step) * (channel == 0 ? 36 : channel == 1 ? 6 : 1);
  }
  return code;
}

class Drawing {
 public:
  Drawing(const Theme& theme, const Screen& screen) : theme_(theme), screen_(screen) {}

  std::string text(const Figure& figure) {
    line(bold(shortened(figure.title, screen_.width)));
    const auto of_curves = std::ranges::count_if(
        figure.panels, [](const Panel& panel) { return panel.cells.empty() && panel.bars.empty(); });
    for (std::size_t i = 0; i < figure.panels.size(); ++i) {
      const Panel& panel = figure.panels[i];
      if (!panel.title.empty()) line(shortened(panel.title, screen_.width));
      if (!panel.cells.empty())
        heat_map(panel);
      else if (!panel.bars.empty())
        bars(panel);
      else
        curves(panel, lines_left() / (figure.panels.size() - i), of_curves > 1 ? 12 : 6);
      for (const std::string& note : panel.notes) {
        for (const std::string& one : wrapped(note, screen_.width - 2)) line("  " + one);
      }
    }
    if (!screen_.unicode) {
      replace_all("\xC2\xB1", "+-");
      replace_all("\xC2\xB5", "u");
    }
    return out_;
  }

 private:
  const Theme& theme_;
  const Screen& screen_;
  std::string out_;

  void line(const std::string& text) {
    const std::size_t last = text.find_last_not_of(' ');
    out_ += (last == std::string::npos ? "" : text.substr(0, last + 1)) + "\n";
  }
  std::size_t lines_left() const {
    const auto lines = static_cast<std::size_t>(std::ranges::count(out_, '\n'));
    return screen_.height - std::min(screen_.height, lines);
  }
  void replace_all(const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = out_.find(what, at)) != std::string::npos; at += with.size())
      out_.replace(at, what.size(), with);
  }
  std::string bold(const std::string& text) const { return screen_.colour ? "\x1b[1m" + text + "\x1b[0m" : text; }
  std::string inked(const std::string& text, const std::string& rgb) const {
    if (!screen_.colour) return text;
    return "\x1b[38;5;" + std::to_string(cube_colour(rgb)) + "m" + text + "\x1b[0m";
  }

  /// a, b, ... z, A, ... Z, and again.
  static char letter(std::size_t curve) { return static_cast<char>((curve / 26 % 2 ? 'A' : 'a') + curve % 26); }

  std::string ink(const Series& series) const {
    return colour(series.rest ? Ink(Ink::Role::note) : series.colour, theme_);
  }

  // ---- curves -------------------------------------------------------------------------------------------------------
  std::vector<std::string> legend(const Panel& panel) const {
    std::size_t longest = 1;
    const auto name = [](const Series& one) { return one.name + (one.note.empty() ? "" : " (" + one.note + ")"); };
    for (const Series& one : panel.series) longest = std::max(longest, characters(name(one)));
    longest = std::min(longest, screen_.width - 6);
    const std::size_t columns = std::max<std::size_t>(1, (screen_.width - 2) / (longest + 5));
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      if (i % columns == 0) lines.emplace_back(" ");
      const std::string sign =
          screen_.colour && screen_.unicode ? "\xE2\x94\x81\xE2\x94\x81" : std::string("=") + letter(i);
      lines.back() += " " + inked(screen_.colour ? sign : std::string(1, letter(i)) + " ", ink(panel.series[i])) + " " +
                      padded_right(shortened(name(panel.series[i]), longest), longest) + " ";
    }
    return lines;
  }

  /// At least `fewest` rows: next to other curves, unreadably few are worse than more than the screen has.
  void curves(const Panel& panel, std::size_t height, std::size_t fewest) {
    const std::vector<std::string> names = legend(panel);
    std::size_t below = 4 + names.size();  // the labels of both axes, the rule and its numbers
    for (const std::string& note : panel.notes) below += wrapped(note, screen_.width - 2).size();
    const std::size_t rows = std::max(fewest, height > below + 2 ? height - below : 0);
    const Range xs = x_range(panel), ys = y_range(panel);
    if (xs.empty() || ys.empty()) {
      line("  (no finite value to draw)");
      return;
    }
    const std::vector<Tick> up = y_ticks(panel, ys, std::max(2, static_cast<int>(rows) / 3));
    std::size_t margin = 1;
    for (const Tick& tick : up) margin = std::max(margin, characters(tick.label));
    const std::size_t columns = screen_.width - margin - 3;
    Canvas canvas(columns, rows, screen_.unicode);
    for (std::size_t i = 0; i < panel.series.size(); ++i) draw(panel.series[i], i, panel, xs, ys, canvas);

    line(padded_left("", margin + 2) + panel.y_label);
    std::vector<std::string> labels(rows);
    for (const Tick& tick : up) {
      const double down = 1 - share(tick.at, ys, panel.log_y);
      labels[static_cast<std::size_t>(std::lround(down * static_cast<double>(rows - 1)))] = tick.label;
    }
    for (std::size_t row = 0; row < rows; ++row) {
      const bool tick = !labels[row].empty();
      const char* const rule = screen_.unicode ? (tick ? "\xE2\x94\xA4" : "\xE2\x94\x82") : (tick ? "+" : "|");
      line(padded_left(labels[row], margin) + " " + rule + cells(canvas, panel, row, columns));
    }
    x_axis(panel, xs, margin, columns);
    for (const std::string& one : names) line(one);
  }

  void draw(const Series& series, std::size_t index, const Panel& panel, const Range& xs, const Range& ys,
            Canvas& canvas) const {
    long last_x = -1, last_y = -1;
    for (std::size_t row = 0; row < series.x.size(); ++row) {
      const double y = series.y[row];
      if (!std::isfinite(y) || (panel.log_y && y <= 0) || (panel.log_x && series.x[row] <= 0)) {
        last_x = -1;
        continue;
      }
      const long dot_x =
          std::lround(share(series.x[row], xs, panel.log_x) * static_cast<double>(canvas.dots_across() - 1));
      const long dot_y = std::lround((1 - share(y, ys, panel.log_y)) * static_cast<double>(canvas.dots_down() - 1));
      if (last_x < 0)
        canvas.dot(dot_x, dot_y, index);
      else
        canvas.line(last_x, last_y, dot_x, dot_y, index);
      last_x = dot_x, last_y = dot_y;
    }
  }

  std::string cells(const Canvas& canvas, const Panel& panel, std::size_t row, std::size_t columns) const {
    std::string text;
    for (std::size_t column = 0; column < columns; ++column) {
      const Canvas::Cell cell = canvas.cell(column, row, screen_.unicode ? 3 : 1);
      // Without colour, letters distinguish the curves: everywhere in ASCII, at intervals among braille dots.
      const bool lettered = !cell.empty && !screen_.colour && (!screen_.unicode || column % 3 == 0);
      if (cell.empty)
        text += " ";
      else if (lettered || !screen_.unicode)
        text += inked(std::string(1, letter(cell.curve)), ink(panel.series[cell.curve]));
      else
        text += inked(cell.glyph, ink(panel.series[cell.curve]));
    }
    return text;
  }

  void x_axis(const Panel& panel, const Range& xs, std::size_t margin, std::size_t columns) {
    std::string labels(columns + 2, ' ');
    std::vector<bool> marks(columns, false);
    std::size_t used = 0;
    for (const Tick& tick : x_ticks(panel, xs, std::max(2, static_cast<int>(columns) / 12))) {
      const auto column =
          static_cast<std::size_t>(std::lround(share(tick.at, xs, panel.log_x) * static_cast<double>(columns - 1)));
      const std::size_t half = tick.label.size() / 2;
      const std::size_t start = std::min(column + 1 > half ? column + 1 - half : 0,
                                         labels.size() - std::min(labels.size(), tick.label.size()));
      if (used > 0 && start < used + 1) continue;
      marks[std::min(column, columns - 1)] = true;
      labels.replace(start, tick.label.size(), tick.label);
      used = start + tick.label.size();
    }
    std::string rule = screen_.unicode ? "\xE2\x94\x94" : "+";
    for (const bool mark : marks)
      rule += screen_.unicode ? (mark ? "\xE2\x94\xB4" : "\xE2\x94\x80") : (mark ? "+" : "-");
    line(padded_left("", margin + 1) + rule);
    const std::string name = "  " + panel.x_label;
    const std::size_t last = labels.find_last_not_of(' ');
    const std::size_t room = labels.size() - (last == std::string::npos ? 0 : last + 1);
    if (room > name.size()) labels.replace(labels.size() - panel.x_label.size(), panel.x_label.size(), panel.x_label);
    line(padded_left("", margin + 1) + labels);
    if (room <= name.size())
      line(padded_left("", margin + 2 + (columns - std::min(columns, characters(panel.x_label))) / 2) + panel.x_label);
  }

  // ---- bars ---------------------------------------------------------------------------------------------------------
  std::string block(double cells, double inner) const {
    const long eighths = std::lround(std::max(0.0, cells) * 8),
               full = screen_.unicode ? eighths / 8 : std::lround(cells);
    const long mark = std::isfinite(inner) ? std::lround(inner - 0.5) : -1;
    std::string text;
    for (long i = 0; i < full; ++i) {
      if (screen_.unicode)
        text += i == mark ? "\xE2\x94\x82" : "\xE2\x96\x88";
      else
        text += i == mark ? '|' : '#';
    }
    // U+258F to U+2589 are blocks of one to seven eighths.
    if (screen_.unicode && eighths % 8 > 0) text += "\xE2\x96" + std::string(1, static_cast<char>(0x90 - eighths % 8));
    return text;
  }

  void bars(const Panel& panel) {
    std::size_t names = 1, labels = 1;
    for (const Bar& bar : panel.bars) {
      names = std::max(names, characters(bar.name));
      labels = std::max(labels, characters(bar.label));
    }
    names = std::min(names, screen_.width / 3);
    labels = std::min(labels, screen_.width / 2);
    const std::size_t fixed = names + labels + 4, room = screen_.width > fixed + 8 ? screen_.width - fixed : 8;
    const Range range = x_range(panel);
    line("  " + panel.x_label);
    for (const Bar& bar : panel.bars) {
      std::string drawn;
      if (panel.style != Panel::Style::bars)
        drawn = box(bar, panel, range, room);
      else if (!range.empty() && range.high > 0)
        drawn = block(std::isfinite(bar.value) ? std::max(0.0, bar.value) / range.high * static_cast<double>(room) : 0,
                      bar.inner / range.high * static_cast<double>(room));
      const std::string label = shortened(bar.label, labels);
      line(padded_left(shortened(bar.name, names), names) + " " + (screen_.unicode ? "\xE2\x94\x82" : "|") +
           inked(drawn, colour(bar.colour, theme_)) + " " + (bar.failed ? inked(label, theme_.failure) : label));
    }
  }

  /// A box with its lines and dots in `room` cells: "  . |---[==|==]----|  ."; or a dot on its range: "  ---o--".
  std::string box(const Bar& bar, const Panel& panel, const Range& range, std::size_t room) const {
    const bool boxes = panel.style == Panel::Style::boxes;
    if (range.empty() || !std::isfinite(bar.value) || (panel.log_x && bar.value <= 0)) return "";
    std::vector<std::string> cells(room, " ");
    const auto fill = [&](double from, double to, const char* fine, const char* plain) {
      if (!std::isfinite(from) || !std::isfinite(to)) return;
      const auto cell = [&](double value) {
        const double at = share(panel.log_x ? std::max(value, range.low) : value, range, panel.log_x);
        return static_cast<std::size_t>(std::clamp(at, 0.0, 1.0) * static_cast<double>(room - 1));
      };
      for (std::size_t i = cell(from); i <= cell(to); ++i) cells[i] = screen_.unicode ? fine : plain;
    };
    fill(panel.reference, panel.reference, "\xE2\x94\x8A", ":");
    for (const double dot : bar.dots) fill(dot, dot, "\xC2\xB7", ".");
    fill(bar.low, bar.high, "\xE2\x94\x80", "-");
    if (boxes) fill(bar.from, bar.value, "\xE2\x96\x88", "=");
    if (boxes) fill(bar.inner, bar.inner, "\xE2\x94\x82", "|");
    if (!boxes) fill(bar.value, bar.value, "\xE2\x97\x8F", "o");
    std::string text;
    for (const std::string& one : cells) text += one;
    return text;
  }

  // ---- heat map -----------------------------------------------------------------------------------------------------
  void heat_map(const Panel& panel) {
    std::size_t names = characters(panel.y_label), wide = 1;
    for (const std::string& row : panel.rows) names = std::max(names, characters(row));
    for (const std::string& column : panel.columns) wide = std::max(wide, characters(column));
    for (const Cell& cell : panel.cells) wide = std::max(wide, characters(cell.label) + 1);
    names = std::min(names, screen_.width / 3);
    line(padded_left(shortened(panel.y_label, names), names) + "   " + panel.x_label);
    std::string header = padded_left("", names);
    for (const std::string& column : panel.columns) header += "  " + padded_left(shortened(column, wide), wide);
    line(header);
    for (std::size_t row = 0; row < panel.rows.size(); ++row) {
      std::vector<std::string> cells(panel.columns.size(), padded_left("", wide));
      for (const Cell& cell : panel.cells) {
        if (cell.row != row) continue;
        const std::string text = padded_left(cell.label + (cell.best ? "*" : " "), wide);
        cells[cell.column] = cell.best ? bold(text) : text;
      }
      std::string text = padded_left(shortened(panel.rows[row], names), names);
      for (const std::string& cell : cells) text += "  " + cell;
      line(text);
    }
    line("  * best" + (panel.key.empty() ? "" : ", " + panel.key));
  }
};

}  // namespace

Screen screen_of_stdout() {
  Screen screen;
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const auto size = [](const char* name, std::size_t otherwise) {
    const auto value = parse_int(environment_variable(name));
    return value && *value >= 20 && *value <= 1000 ? static_cast<std::size_t>(*value) : otherwise;
  };
  screen.width = size("COLUMNS", 80);
  screen.height = size("LINES", 24);
  winsize window = {};
  if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col >= 20 && window.ws_row >= 10) {
    screen.width = window.ws_col;
    screen.height = window.ws_row - 1U;  // the prompt takes a line
  }
  std::string locale = environment_variable("LC_ALL");
  if (locale.empty()) locale = environment_variable("LC_CTYPE");
  if (locale.empty()) locale = environment_variable("LANG");
  locale = lower(locale);
  screen.unicode = locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  screen.colour = terminal && environment_variable("NO_COLOR").empty() && environment_variable("TERM") != "dumb";
  return screen;
}

std::string terminal_text(const Figure& figure, const Theme& theme, const Screen& screen) {
  return Drawing(theme, screen).text(drawable(figure));
}

}  // namespace zs::figure
