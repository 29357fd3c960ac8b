// SPDX-License-Identifier: Apache-2.0
#include "plot/script.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/number.hpp"
#include "plot/axis.hpp"
#include "plot/layout.hpp"

namespace zs::plot {
namespace {

constexpr std::size_t kMarkersUpTo = 40;  // a panel whose curves have no more points shows each of them
constexpr std::size_t kLongestName = 44;  // characters of a name beside a bar
constexpr double kStripe = 7;             // length of a stripe where curves coincide, in line widths

/// Text as a gnuplot string. In double quotes gnuplot would run what stands between backquotes; in single quotes
/// nothing is special but the quote itself.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += c;
  }
  return result + "'";
}

/// As quoted, for the name of a tick, which gnuplot takes for a format.
std::string tick_name(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '%' ? std::string("%%") : std::string(1, c);
  return quoted(result);
}

std::string value(double number) { return std::isfinite(number) ? zs::to_text(number) : "NaN"; }

class Script {
 public:
  Script(Figure figure, const Theme& theme, Format format)
      : figure_(std::move(figure)), theme_(theme), format_(format), layout_(theme) {}

  std::string text() {
    const std::size_t columns = std::max<std::size_t>(1, figure_.columns);
    const std::size_t rows = (figure_.panels.size() + columns - 1) / columns;
    const double panel_width = columns == 1 ? theme_.width : theme_.width * 0.8;
    std::vector<double> heights(rows, 0);
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
      heights[i / columns] = std::max(heights[i / columns], layout_.height(figure_.panels[i], panel_width));
    }
    const double title_height = 2.2 * line_height_;
    width_ = panel_width * static_cast<double>(columns);
    height_ = title_height;
    for (const double h : heights) height_ += h;
    terminal();
    out_ << "set encoding utf8\nset multiplot\n";
    label(figure_.title, 14, 1.1 * line_height_, theme_.foreground, theme_.font_size * 1.35);
    double top = title_height;
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
      const std::size_t row = i / columns;
      panel(figure_.panels[i], {panel_width * static_cast<double>(i % columns), top, panel_width, heights[row]});
      if (i % columns + 1 == columns) top += heights[row];
    }
    out_ << "unset multiplot\n";
    return out_.str();
  }

 private:
  const Figure figure_;
  const Theme& theme_;
  Format format_;
  std::ostringstream out_;
  const Layout layout_;
  const double char_width_ = layout_.char_width(), line_height_ = layout_.line_height();
  double width_ = 0, height_ = 0;
  int labels_ = 0, objects_ = 0;

  // ---- places -------------------------------------------------------------------------------------------------------
  std::string x(double pixels) const { return zs::to_text(pixels / width_); }
  std::string y(double pixels) const { return zs::to_text(1 - pixels / height_); }

  // ---- commands -----------------------------------------------------------------------------------------------------
  void terminal() {
    const std::string font = quoted(theme_.font + "," + zs::to_text(theme_.font_size));
    if (format_ == Format::png) {
      const std::string scale = zs::to_text(theme_.scale);
      out_ << "set terminal pngcairo noenhanced size " << std::lround(width_ * theme_.scale) << ","
           << std::lround(height_ * theme_.scale) << " font " << font << " fontscale " << scale << " linewidth "
           << scale << " pointscale " << scale << " background " << quoted(theme_.background) << "\n";
    } else if (format_ == Format::svg) {
      out_ << "set terminal svg noenhanced size " << std::lround(width_) << "," << std::lround(height_)
           << " dynamic font " << font << " background " << quoted(theme_.background) << "\n";
    } else {
      out_ << "set terminal pdfcairo noenhanced size " << zs::to_text(width_ / 96) << "in," << zs::to_text(height_ / 96)
           << "in font " << font << " fontscale 0.75 linewidth 0.75 pointscale 0.75 background "
           << quoted(theme_.background) << "\n";
    }
  }

  void label(const std::string& text, double left, double middle, const std::string& colour, double size) {
    out_ << "set label " << ++labels_ << " " << quoted(text) << " at screen " << x(left) << "," << y(middle)
         << " left front textcolor rgb " << quoted(colour) << " font " << quoted("," + zs::to_text(size)) << "\n";
  }

  /// Text at a place of the axes. Data could hold it too, but only in double quotes.
  void mark(const std::string& text, const std::string& at_x, const std::string& at_y, const std::string& how,
            const std::string& colour) {
    if (text.empty()) return;
    out_ << "set label " << ++labels_ << " " << quoted(text) << " at first " << at_x << "," << at_y << " " << how
         << " front textcolor rgb " << quoted(colour) << "\n";
  }

  void axes(const Panel& panel, const Box& box) {
    out_ << "set lmargin at screen " << x(box.left) << "\nset rmargin at screen " << x(box.left + box.width)
         << "\nset tmargin at screen " << y(box.top) << "\nset bmargin at screen " << y(box.top + box.height) << "\n"
         << "set border "
         << (is_map(panel)    ? 0
             : is_bars(panel) ? 1
                              : 3)
         << " linecolor rgb " << quoted(theme_.foreground) << " linewidth 1\nset grid "
         << (is_bars(panel) ? "noytics xtics" : "xtics ytics") << " linecolor rgb " << quoted(theme_.grid)
         << " linewidth 1 dashtype solid\n"
         << "set tics nomirror scale 0.5 textcolor rgb " << quoted(theme_.foreground) << "\n"
         << "set xlabel " << quoted(panel.x_label) << " textcolor rgb " << quoted(theme_.foreground) << "\n"
         << "set ylabel " << quoted(panel.y_label) << " textcolor rgb " << quoted(theme_.foreground) << "\n"
         << "set xtics autofreq format '%h'\nset ytics autofreq format '%h'\nset autoscale xy\nunset "
            "key\n";
  }

  void panel(const Panel& panel, Box box) {
    box.height =
        std::min(box.height, layout_.height(panel, box.width));  // bars beside a taller neighbour stay as they are
    double top = box.top;
    if (!panel.title.empty())
      label(panel.title, box.left + 14, top + 0.7 * line_height_, theme_.foreground, theme_.font_size * 1.1);
    top += layout_.title_height(panel);
    const std::vector<std::string> notes = layout_.note_lines(panel, box.width);
    const double bottom = box.top + box.height - line_height_ * (0.4 + static_cast<double>(notes.size()));
    for (std::size_t i = 0; i < notes.size(); ++i) {
      label(notes[i], box.left + 20, bottom + line_height_ * (0.3 + static_cast<double>(i)), theme_.note,
            theme_.font_size * 0.9);
    }
    const Box inside = {box.left, top, box.width, bottom - top};
    if (is_map(panel))
      heat_map(panel, inside);
    else if (is_bars(panel))
      bars(panel, inside);
    else
      curves(panel, inside);
    out_ << "undefine $*\n";
    for (; labels_ > 0; --labels_) out_ << "unset label " << labels_ << "\n";
    for (; objects_ > 0; --objects_) out_ << "unset object " << objects_ << "\n";
  }

  // ---- curves -------------------------------------------------------------------------------------------------------
  std::string colour(std::size_t place) const { return quoted(theme_.colour(place)); }

  /// Curves on one another: the first is solid, each later one covers a part of every period.
  static std::string dashes(const Series& series) {
    if (series.layer == 0 || series.layers < 2) return "solid";
    const double on = kStripe * static_cast<double>(series.layers - series.layer),
                 off = kStripe * static_cast<double>(series.layer);
    return "(" + zs::to_text(on) + "," + zs::to_text(off) + ")";
  }

  void curves(const Panel& panel, const Box& box) {
    const double legend_height = 1.25 * line_height_ * static_cast<double>(layout_.legend_rows(panel, box.width));
    const Range xs = x_range(panel), ys = y_axis(panel);
    if (xs.empty() || ys.empty()) {  // gnuplot takes that for an error
      label("no finite value to draw", box.left + 20, box.top + line_height_, theme_.note, theme_.font_size);
      legend(panel, {box.left, box.top + box.height - legend_height, box.width, legend_height});
      out_ << "unset border\nunset tics\nset xrange [0:1]\nset yrange [0:1]\n";
      return plot({"2 notitle"});  // labels come with a plot
    }
    const std::vector<Tick> up = ticks(ys.low, ys.high, static_cast<int>(box.height / 60), panel.log_y);
    std::size_t longest = 1;
    for (const Tick& tick : up) longest = std::max(longest, length(tick.label));
    const double left = static_cast<double>(longest) * char_width_ + 2.2 * line_height_;
    const Box inside = {box.left + left, box.top, box.width - left - 2.5 * char_width_,
                        box.height - legend_height - 3 * line_height_};
    axes(panel, inside);
    span("y", ys, up, panel.log_y);
    if (!xs.flat()) span("x", xs, x_ticks(panel, xs, static_cast<int>(inside.width / 80)), panel.log_x);
    legend(panel, {box.left, box.top + box.height - legend_height, box.width, legend_height});
    for (std::size_t i = 0; i < panel.series.size(); ++i) data(panel, panel.series[i], i);
    std::vector<std::string> parts;
    std::size_t most = 0;
    for (const Series& series : panel.series) most = std::max(most, series.x.size());
    for (std::size_t i = 0; i < panel.series.size(); ++i) curve(panel.series[i], i, most <= kMarkersUpTo, parts);
    plot(parts);
  }

  /// A place on an axis. gnuplot's own logarithmic axes leave out numbers above 9e307, which it takes for undefined.
  static std::string place(double at, bool log) { return value(log ? std::log10(at) : at); }

  /// What an axis shows, and its ticks.
  void span(const std::string& axis, const Range& range, const std::vector<Tick>& all, bool log) {
    out_ << "set " << axis << "range [" << place(range.low, log) << ":" << place(range.high, log) << "]\n"
         << "set " << axis << "tics (";
    for (std::size_t i = 0; i < all.size(); ++i)
      out_ << (i ? ", " : "") << tick_name(all[i].label) << " " << place(all[i].at, log);
    out_ << ")\n";
  }

  /// Swatches and names, laid out here: gnuplot's key guesses the widths of names, and cuts what it guessed wrong.
  void legend(const Panel& panel, const Box& box) {
    const std::size_t columns = layout_.legend_columns(panel, box.width), room = layout_.chars(box.width - 70);
    const double each = (box.width - 28) / static_cast<double>(columns), row = 1.25 * line_height_;
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      const double left = box.left + 20 + each * static_cast<double>(i % columns);
      const double middle = box.top + row * (static_cast<double>(i / columns) + 0.4);
      out_ << "set object " << ++objects_ << " rectangle from screen " << x(left) << "," << y(middle - 2.5)
           << " to screen " << x(left + 24) << "," << y(middle + 2.5) << " fillcolor rgb "
           << colour(panel.series[i].colour) << " fillstyle solid noborder\n";
      label(shortened(legend_name(panel.series[i]), room), left + 32, middle,
            panel.series[i].note.empty() ? theme_.foreground : theme_.failure, theme_.font_size);
    }
  }

  void data(const Panel& panel, const Series& series, std::size_t index) {
    if (series.x.empty()) return;
    out_ << "$curve" << index << " << END_OF_DATA\n";
    for (std::size_t row = 0; row < series.x.size(); ++row) {
      out_ << place(series.x[row], panel.log_x) << " " << place(series.y[row], panel.log_y);
      if (!series.low.empty())
        out_ << " " << place(series.low[row], panel.log_y) << " " << place(series.high[row], panel.log_y);
      out_ << "\n";
    }
    out_ << "END_OF_DATA\n";
  }

  void curve(const Series& series, std::size_t index, bool markers, std::vector<std::string>& parts) const {
    if (series.x.empty()) return;
    const std::string from = "$curve" + std::to_string(index) + " using ";
    const std::string ink = " linecolor rgb " + colour(series.colour);
    if (!series.low.empty())
      parts.push_back(from + "1:3:4 with filledcurves fillstyle transparent solid 0.18 noborder" + ink + " notitle");
    if (!series.points) {
      parts.push_back(from + "1:2 with lines linewidth " +
                      zs::to_text(theme_.line_width * (series.layers > 1 ? 1.6 : 1)) + " dashtype " + dashes(series) +
                      ink + " notitle");
    }
    if (series.points || markers || series.x.size() == 1) {
      parts.push_back(from + "1:2 every " + std::to_string(series.layers) + "::" + std::to_string(series.layer) +
                      " with points pointtype 7 pointsize 0.55" + ink + " notitle");
    }
    if (series.note.empty()) return;
    for (std::size_t row = series.x.size(); row-- > 0;) {
      if (!std::isfinite(series.y[row])) continue;
      parts.push_back(from + "1:2 every ::" + std::to_string(row) + "::" + std::to_string(row) +
                      " with points pointtype 2 pointsize 1.4 linewidth 2 linecolor rgb " + quoted(theme_.failure) +
                      " notitle");
      break;
    }
  }

  void plot(const std::vector<std::string>& parts) {
    out_ << "plot ";
    for (std::size_t i = 0; i < parts.size(); ++i) out_ << (i ? ", \\\n  " : "") << parts[i];
    out_ << "\n";
  }

  // ---- bars ---------------------------------------------------------------------------------------------------------
  void bars(const Panel& panel, const Box& box) {
    std::size_t longest = 4;
    for (const Bar& bar : panel.bars) longest = std::max(longest, std::min(length(bar.name), kLongestName));
    const double left = static_cast<double>(longest) * char_width_ + 34;
    const Box inside = {box.left + left, box.top, box.width - left - 24, box.height - 3 * line_height_};
    axes(panel, inside);
    out_ << "set style textbox opaque noborder fillcolor rgb " << quoted(theme_.background) << " margins 0.2,0.1\n";
    const BarAxis span = bar_axis(panel, char_width_, inside.width);
    out_ << "set xrange [" << value(span.low) << ":" << value(span.high) << "]\nset yrange ["
         << value(static_cast<double>(panel.bars.size()) - 0.4) << ":-0.6]\nset ytics scale 0 (";
    for (std::size_t i = 0; i < panel.bars.size(); ++i) {
      out_ << (i ? ", " : "") << tick_name(shortened(panel.bars[i].name, kLongestName)) << " " << i;
    }
    out_ << ")\n";
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < panel.bars.size(); ++i)
      bar(panel.bars[i], static_cast<double>(i), span.low, panel.boxes, parts);
    plot(parts);
  }

  /// One datum as a plot part of its own: inline data need no name.
  void bar(const Bar& bar, double row, double start, bool box, std::vector<std::string>& parts) {
    const std::string name = "$bar" + std::to_string(parts.size());
    const bool whiskers = std::isfinite(bar.low) && std::isfinite(bar.high);
    const double reach = std::isfinite(bar.value) ? bar_reach(bar) : start;
    const std::string from = value(bar.from);
    out_ << name << " << END_OF_DATA\n"
         << value(row) << " " << value(bar.value) << " " << value(bar.low) << " " << value(bar.high) << " "
         << value(bar.inner) << "\nEND_OF_DATA\n";
    const auto part = [&](const std::string& text) { parts.push_back(name + " using " + text + " notitle"); };
    const auto ink = [&](const std::string& colour) { return " linecolor rgb " + quoted(colour); };
    const auto whisker = [&] {
      if (!whiskers) return;
      part("2:1:3:4 with xerrorbars pointtype 0 linewidth 3.5" + ink(theme_.background));
      part("2:1:3:4 with xerrorbars pointtype 0 linewidth 1.5" + ink(theme_.foreground));
    };
    if (box) whisker();
    if (std::isfinite(bar.value)) {
      part("2:1:(" + from + "):2:($1-0.34):($1+0.34) with boxxyerror fillstyle " +
           (bar.failed ? "transparent solid 0.35 noborder" : "solid noborder") + ink(theme_.colour(bar.colour)));
      if (std::isfinite(bar.inner)) {
        part("5:1:5:5:($1-0.34):($1+0.34) with boxxyerror fillstyle empty linewidth 2.5" + ink(theme_.background));
      }
    }
    if (!box) whisker();
    if (!bar.dots.empty()) {
      const std::string dots = name + "dots";
      out_ << dots << " << END_OF_DATA\n";
      for (const double dot : bar.dots) out_ << value(dot) << " " << value(row) << "\n";
      out_ << "END_OF_DATA\n";
      parts.push_back(dots + " using 1:2 with points pointtype 7 pointsize 0.4" + ink(theme_.colour(bar.colour)) +
                      " notitle");
    }
    mark(bar.label, value(reach), value(row), "left boxed offset character 0.7,0",
         bar.failed ? theme_.failure : theme_.foreground);
  }

  // ---- heat map -----------------------------------------------------------------------------------------------------
  void heat_map(const Panel& panel, const Box& box);
};

void Script::heat_map(const Panel& panel, const Box& box) {
  std::size_t longest = 4;
  for (const std::string& row : panel.rows) longest = std::max(longest, std::min(length(row), kLongestName));
  const double left = static_cast<double>(longest) * char_width_ + 34 + (panel.y_label.empty() ? 0 : line_height_);
  axes(panel, {box.left + left, box.top, box.width - left - 24, box.height - 3 * line_height_});
  out_ << "unset grid\nset xrange [-0.5:" << value(static_cast<double>(panel.columns.size()) - 0.5) << "]\nset yrange ["
       << value(static_cast<double>(panel.rows.size()) - 0.5) << ":-0.5]\n";
  const auto names = [&](const char* axis, const std::vector<std::string>& all) {
    out_ << "set " << axis << " scale 0 (";
    for (std::size_t i = 0; i < all.size(); ++i)
      out_ << (i ? ", " : "") << tick_name(shortened(all[i], kLongestName)) << " " << i;
    out_ << ")\n";
  };
  names("xtics", panel.columns);
  names("ytics", panel.rows);
  Range range;
  for (const Cell& cell : panel.cells) range.include(cell.value);
  std::vector<std::string> parts;
  for (const Cell& cell : panel.cells) {
    const std::string name = "$cell" + std::to_string(parts.size());
    // Light to dark with the value: one hue, so that order is seen without colour.
    const double share =
        std::isfinite(cell.value) && range.low < range.high ? (cell.value - range.low) / (range.high - range.low) : 0;
    const auto mix = [&](int light, int dark) { return static_cast<int>(std::lround(light + share * (dark - light))); };
    const int rgb =
        std::isfinite(cell.value) ? mix(0xE3, 0x08) << 16 | mix(0xEE, 0x45) << 8 | mix(0xF9, 0x94) : 0xEEEEEE;
    out_ << name << " << END_OF_DATA\n" << cell.column << " " << cell.row << "\nEND_OF_DATA\n";
    parts.push_back(name + " using 1:2:($1-0.48):($1+0.48):($2-0.46):($2+0.46) with boxxyerror fillstyle solid " +
                    (cell.best ? "border linewidth 1 linecolor rgb " : "noborder linecolor rgb ") +
                    std::to_string(rgb) + " notitle");
    if (cell.best) {
      parts.push_back(name +
                      " using 1:2:($1-0.48):($1+0.48):($2-0.46):($2+0.46) with boxxyerror fillstyle empty border "
                      "linewidth 3 linecolor rgb " +
                      quoted(theme_.palette.size() > 5 ? theme_.palette[5] : theme_.failure) + " notitle");
    }
    mark(cell.label, std::to_string(cell.column), std::to_string(cell.row), "center",
         std::isfinite(cell.value) && share > 0.5 ? "#FFFFFF" : theme_.foreground);
  }
  plot(parts);
}

}  // namespace

std::string script(const Figure& figure, const Theme& theme, Format format) {
  return Script(drawable(figure), theme, format).text();
}

}  // namespace zs::plot
