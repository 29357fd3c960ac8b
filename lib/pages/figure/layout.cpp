// SPDX-License-Identifier: Apache-2.0
// The page and its curves.
#include "figure/layout.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace zs::figure {
namespace {

constexpr double kStripe = 11;            // length of a stripe where curves coincide
constexpr std::size_t kMarkersUpTo = 40;  // a panel whose curves have no more points shows each of them

/// The rows of a curve that a drawing of this size can show: the first, the extremes and the last of each unit across.
template <typename X>
std::vector<std::size_t> visible(const Series& series, const std::vector<double>& values, const X& px) {
  std::vector<std::size_t> kept;
  for (std::size_t start = 0, end = 0; start < series.x.size(); start = end) {
    std::size_t low = start, high = start;
    while (end < series.x.size() && std::floor(px(series.x[end])) == std::floor(px(series.x[start]))) {
      if (!(values[end] >= values[low])) low = end;
      if (!(values[end] <= values[high])) high = end;
      ++end;
    }
    for (const std::size_t row : {start, std::min(low, high), std::max(low, high), end - 1}) {
      if (kept.empty() || kept.back() < row) kept.push_back(row);
    }
  }
  return kept;
}

/// A curve in pieces: a value without a place on the axis ends one.
template <typename Axis>
std::vector<std::vector<Point>> paths(const Series& series, const std::vector<double>& values, const Axis& px,
                                      const Axis& py) {
  std::vector<std::vector<Point>> pieces(1);
  for (const std::size_t row : visible(series, values, px)) {
    if (shown_on(values[row], py.log))
      pieces.back().push_back({px(series.x[row]), py(values[row])});
    else if (!pieces.back().empty())
      pieces.emplace_back();
  }
  if (pieces.back().empty()) pieces.pop_back();
  return pieces;
}

}  // namespace

Layout::Layout(const Figure& figure, const Shape& shape) : shape_(shape) {
  const bool phone = shape.width < 500;
  const std::size_t columns = phone ? 1 : std::max<std::size_t>(1, figure.columns);
  const double gap = 28, margin = shape.title ? 14 : 0;
  const double each =
      (shape.width - 2 * margin - gap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
  double top = margin, bottom = top;
  if (shape.title) text(figure.title, margin, top + 11, Anchor::start, Ink::Role::text).size = 1.3, top += 36;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const double left = margin + static_cast<double>(i % columns) * (each + gap);
    bottom = std::max(bottom, panel(figure.panels[i], i, {left, top, each}));
    if (i % columns + 1 == columns || i + 1 == figure.panels.size()) top = bottom + 8;
  }
  scene_.width = shape.width, scene_.height = top + margin;
}

Mark& Layout::text(const std::string& words, double x, double y, Anchor anchor, Ink ink) {
  scene_.marks.push_back({.shape = Mark::Shape::text, .at = {{x, y}}, .ink = ink, .text = words, .anchor = anchor});
  return scene_.marks.back();
}
double Layout::paragraph(const std::string& words, double most, double x, double y, double size) {
  constexpr double kPitch = 17;
  for (const std::string& one : wrapped(words, static_cast<std::size_t>(most)))
    text(one, x, y, Anchor::start, Ink::Role::note).size = size, y += kPitch;
  return y;
}
Mark& Layout::line(std::vector<Point> at, Ink ink, double width) {
  scene_.marks.push_back({.shape = Mark::Shape::line, .at = std::move(at), .ink = ink, .size = width});
  return scene_.marks.back();
}
Mark& Layout::area(std::vector<Point> corners, Ink ink, double opacity) {
  scene_.marks.push_back({.shape = Mark::Shape::area, .at = std::move(corners), .ink = ink, .opacity = opacity});
  return scene_.marks.back();
}
Mark& Layout::box(double x, double y, double width, double height, Ink ink, double opacity) {
  return area({{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}, ink, opacity);
}
void Layout::dot(double x, double y, double radius, Ink ink) {
  scene_.marks.push_back({.shape = Mark::Shape::dot, .at = {{x, y}}, .ink = ink, .size = radius});
}

double Layout::panel(const Panel& panel, std::size_t index, Frame frame) {
  if (!panel.title.empty())
    text(panel.title, frame.left, frame.top + 10, Anchor::start, Ink::Role::text).bold = true, frame.top += 1.4 * kLine;
  double y = is_map(panel) ? heat_map(panel, frame) : is_bars(panel) ? bars(panel, frame) : curves(panel, index, frame);
  for (const std::string& note : panel.notes) y = paragraph(note, frame.width / 6.8, frame.left, y + 12, 0.94) - 12;
  return y + 10;
}

double Layout::curves(const Panel& panel, std::size_t index, const Frame& frame) {
  const Range xs = x_range(panel), ys = y_axis(panel);
  if (xs.empty() || ys.empty()) {
    text("no finite value to draw", frame.left, frame.top + 16, Anchor::start, Ink::Role::note);
    return frame.top + 30;
  }
  std::vector<const Series*> named;
  std::size_t most = 0, longest = 1, name = 0;
  for (const Series& series : panel.series) {
    most = std::max(most, series.x.size());
    if (series.rest) continue;
    named.push_back(&series);
    name = std::max(name, characters(legend_name(series)));
  }
  const std::size_t others = panel.series.size() - named.size();
  const bool at_ends = others > 0 && !frame.phone();
  const double usual = frame.phone() ? 240 : std::clamp(0.45 * frame.width, 240.0, 380.0);
  const double height = shape_.curve_height > 0 ? shape_.curve_height : usual;
  const std::vector<Tick> up = y_ticks(panel, ys, static_cast<int>(height / 45));
  for (const Tick& tick : up) longest = std::max(longest, characters(tick.label));
  const double below = paragraph(panel.y_label, frame.width / kChar, frame.left, frame.top + 9);
  const double y0 = std::max(below, frame.top + 26), y1 = y0 + height;
  const double x0 = frame.left + static_cast<double>(longest) * kChar + 10;
  const double x1 =
      frame.right() - 12 - (at_ends ? static_cast<double>(std::min<std::size_t>(name, 26)) * kChar + 16 : 0);
  const Axis px{xs, x0, x1, panel.log_x}, py{ys, y1, y0, panel.log_y};
  for (const Tick& tick : up) {
    line({{x0, py(tick.at)}, {x1, py(tick.at)}}, Ink::Role::grid);
    text(tick.label, x0 - 7, py(tick.at), Anchor::end, Ink::Role::note);
  }
  for (const Tick& tick :
       fitting(x1 - x0, frame.phone() ? 55 : 85, [&](int count) { return x_ticks(panel, xs, count); })) {
    line({{px(tick.at), y1}, {px(tick.at), y1 + 5}}, Ink::Role::note);
    text(tick.label, px(tick.at), y1 + 15, Anchor::middle, Ink::Role::note);
  }
  line({{x0, y1}, {x1, y1}}, Ink::Role::note);
  text(panel.x_label, (x0 + x1) / 2, y1 + 33, Anchor::middle, Ink::Role::note);
  if (std::isfinite(panel.reference))
    line({{x0, py(panel.reference)}, {x1, py(panel.reference)}}, Ink::Role::failure, 1.5);
  for (const Series& series : panel.series) band(series, px, py);
  for (const Series& series : panel.series) {  // below all lines
    if (series.raw.empty() || series.layer > 0) continue;
    for (const std::vector<Point>& path : paths(series, series.raw, px, py)) line(path, series.colour).opacity = 0.35;
  }
  const auto layer_of = [](const Series& series) { return series.rest ? 0 : series.behind ? 1 : 2; };
  for (const int layer : {0, 1, 2}) {
    for (const Series& series : panel.series) {
      if (layer_of(series) == layer) curve(series, px, py, most <= kMarkersUpTo);
    }
  }
  scene_.pointers.push_back({index, x0, x1, y0, y1, xs.low, xs.high, panel.log_x});
  if (at_ends) name_at_ends(named, px, py), named.clear();
  return legend(named, others, {frame.left, y1 + 48, frame.width});
}

/// Names at the ends of their curves, moved apart if they would overlap.
void Layout::name_at_ends(const std::vector<const Series*>& named, const Axis& px, const Axis& py) {
  struct End {
    double x, y;
    const Series* series;
  };
  std::vector<End> ends;
  for (const Series* const series : named) {
    for (std::size_t row = series->x.size(); row-- > 0;) {
      if (!shown_on(series->y[row], py.log)) continue;
      ends.push_back({px(series->x[row]), py(series->y[row]), series});
      break;
    }
  }
  std::ranges::sort(ends, [](const End& a, const End& b) { return a.y > b.y; });  // from the bottom up
  double free = py.from;
  for (End& end : ends) {
    const double at = std::min(end.y, free);
    const double x = std::max(end.x, px.to) + 6;
    box(x, at - 2.5, 10, 5, end.series->colour);
    text(shortened(legend_name(*end.series), 26), x + 14, at, Anchor::start,
         end.series->note.empty() ? Ink::Role::text : Ink::Role::failure);
    free = at - 15;
  }
}

double Layout::legend(const std::vector<const Series*>& named, std::size_t others, const Frame& frame) {
  struct Entry {
    std::string name;
    Ink ink;
    bool failed;
  };
  std::vector<Entry> entries;
  entries.reserve(named.size() + 1);
  for (const Series* const one : named) entries.push_back({legend_name(*one), one->colour, !one->note.empty()});
  if (others > 0) entries.push_back({std::to_string(others) + " others", Ink::Role::grid, false});
  if (entries.empty()) return frame.top;
  std::size_t longest = 1;
  for (const Entry& one : entries) longest = std::max(longest, characters(one.name));
  const double widest = std::min(frame.width, static_cast<double>(longest) * kChar + 44);
  const auto fit = std::clamp<std::size_t>(static_cast<std::size_t>(frame.width / widest), 1, entries.size());
  const std::size_t rows = (entries.size() + fit - 1) / fit, columns = (entries.size() + rows - 1) / rows;  // balanced
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t row = i / columns;
    const double x = frame.left + widest * static_cast<double>(i % columns),
                 y = frame.top + kLine * static_cast<double>(row) + 6;
    box(x, y - 2.5, 22, 5, entries[i].ink);
    text(shortened(entries[i].name, static_cast<std::size_t>((frame.width - 36) / kChar)), x + 29, y, Anchor::start,
         entries[i].failed ? Ink::Role::failure : Ink::Role::text);
  }
  return frame.top + kLine * static_cast<double>(rows);
}

void Layout::curve(const Series& series, const Axis& px, const Axis& py, bool markers) {
  const Ink ink = series.rest ? Ink(Ink::Role::grid) : series.colour;
  const double width = series.rest ? 1.4 : series.layers > 1 ? 3.4 : 2.2;
  std::vector<Point> dots;
  Point last{kNone, kNone};
  for (const std::vector<Point>& path : paths(series, series.y, px, py)) {
    last = path.back();
    if (path.size() == 1) dots.push_back(last);
    if (path.size() < 2) continue;
    Mark& drawn = line(path, ink, width);
    if (series.layer == 0) continue;  // curves on one another: each later one covers a part of every period
    drawn.dash = kStripe * static_cast<double>(series.layers - series.layer);
    drawn.gap = kStripe * static_cast<double>(series.layer);
  }
  for (std::size_t row = series.layer; markers && row < series.x.size(); row += series.layers) {
    if (shown_on(series.y[row], py.log)) dots.push_back({px(series.x[row]), py(series.y[row])});
  }
  for (const Point& at : dots) dot(at.x, at.y, series.x.size() == 1 ? 6 : 3, ink);  // a finding alone, as the best
  if (series.note.empty() || !std::isfinite(last.x)) return;
  std::size_t end =
      series.y.size();  // the cross is where the value is no number any more, at the height of the last one
  while (end > 0 && !std::isfinite(series.y[end - 1])) --end;
  if (end < series.x.size()) last.x = px(series.x[end]);
  line({{last.x - 5, last.y - 5}, {last.x + 5, last.y + 5}}, Ink::Role::failure, 2.5);
  line({{last.x - 5, last.y + 5}, {last.x + 5, last.y - 5}}, Ink::Role::failure, 2.5);
}

void Layout::band(const Series& series, const Axis& px, const Axis& py) {
  if (series.low.empty()) return;
  std::vector<Point> outline, back;
  for (const std::size_t row : visible(series, series.y, px)) {
    if (!shown_on(series.low[row], py.log) || !std::isfinite(series.high[row])) continue;
    outline.push_back({px(series.x[row]), py(series.high[row])});
    back.push_back({px(series.x[row]), py(series.low[row])});
  }
  outline.insert(outline.end(), back.rbegin(), back.rend());
  if (outline.size() > 3) area(std::move(outline), series.colour, 0.18);
}

Scene scene(const Figure& figure, const Shape& shape) { return Layout(drawable(figure), shape).take(); }

double pixels(const Theme& theme) { return theme.font_size * 96 / 72 / 13; }

Scene scene(const Figure& figure, const Theme& theme) {
  const double unit = pixels(theme);
  const double width = figure.columns > 1 ? theme.width * 0.8 * static_cast<double>(figure.columns) : theme.width;
  return scene(figure, Shape{std::max(width / unit, 120.0), theme.height / unit, true});
}

}  // namespace zs::figure
