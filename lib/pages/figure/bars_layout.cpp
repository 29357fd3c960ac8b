// SPDX-License-Identifier: Apache-2.0
// Bars, boxes, dots on their ranges, and heat maps.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "base/text.hpp"
#include "figure/layout.hpp"

namespace zs::figure {
namespace {

constexpr double kThick = 20;         // of a bar
constexpr std::size_t kLongest = 40;  // characters of a name next to a bar

/// The ends of an axis of bars: from 0, or around all boxes and dots, with room for a label after each bar.
Range bar_range(const Panel& panel, double width) {
  Range range = x_range(panel);
  if (range.empty()) return panel.log_x ? Range{1, 10} : Range{0, 1};
  if (panel.style != Panel::Style::bars) {
    const double factor = panel.log_x ? std::pow(range.high / range.low, 0.04) : 1;
    const double margin = panel.log_x ? 0 : 0.04 * (range.high - range.low);
    range = {panel.log_x ? range.low / factor : range.low - margin, range.high * factor + margin};
  }
  if (panel.style == Panel::Style::bars) {
    const double low = range.low, reached = range.high;
    for (const Bar& bar : panel.bars) {
      const double reach = std::isfinite(bar.value) ? bar_reach(bar) : low;
      const double room = (static_cast<double>(characters(bar.label)) * kChar + 20) / width;
      range.high = std::max(range.high, low + (std::min(reach, reached) - low) / std::max(0.2, 1 - room));
    }
  }
  if (range.flat()) range.high = panel.log_x ? range.low * 2 : range.low + std::max(1.0, 0.01 * std::abs(range.low));
  return range;
}

/// How a value is drawn in a heat map: darker the larger, and red above the panel's reference.
struct Shade {
  Ink ink;
  double tint;
};
Shade shade_of(double value, const Range& range, double reference) {
  if (!std::isfinite(reference)) return {0, tint(share(value, range, false))};
  if (value > reference) return {Ink::Role::failure, tint(share(value, {reference, range.high}, false))};
  return {0, 0.6 * tint(share(value, {range.low, std::max(reference, range.low)}, false))};
}

}  // namespace

double Layout::bars(const Panel& panel, const Frame& frame) {
  const bool above = frame.phone(), boxes = panel.style == Panel::Style::boxes;
  std::size_t names = 1, labels = 0;
  for (const Bar& bar : panel.bars) {
    names = std::max(names, std::min(characters(bar.name), kLongest));
    labels = std::max(labels, characters(bar.label));
  }
  const bool column = panel.style == Panel::Style::points;  // values are in a column, on a phone above their ranges
  const double x0 = above ? frame.left + 2 : frame.left + static_cast<double>(names) * kChar + 12,
               x1 = frame.right() - 8 - (column && !above ? static_cast<double>(labels) * kChar + 8 : 0);
  const double pitch = above ? (boxes ? 50 : 44) : boxes ? 44 : column ? 24 : 32;
  const double head = frame.top + 4, foot = head + pitch * static_cast<double>(panel.bars.size());
  const Axis px{bar_range(panel, x1 - x0), x0, x1, panel.log_x};
  if (std::isfinite(panel.shade_low))
    box(px(panel.shade_low), head, px(panel.shade_high) - px(panel.shade_low), foot - head, Ink::Role::grid, 0.45);
  for (const Tick& tick : fitting(x1 - x0, above ? 60 : 85,
                                  [&](int count) { return ticks(px.range.low, px.range.high, count, panel.log_x); })) {
    line({{px(tick.at), head}, {px(tick.at), foot}}, Ink::Role::grid);
    const bool edge = above && px(tick.at) < x0 + 8;
    text(tick.label, px(tick.at), foot + 13, edge ? Anchor::start : Anchor::middle, Ink::Role::note);
  }
  if (std::isfinite(panel.reference))
    line({{px(panel.reference), head}, {px(panel.reference), foot}}, Ink::Role::note, 1.5);
  for (std::size_t i = 0; i < panel.bars.size(); ++i) {
    const Bar& one = panel.bars[i];
    const double row = head + pitch * static_cast<double>(i);
    const double middle = above ? row + pitch - 15 : row + pitch - (boxes ? 15 : pitch / 2);
    if (above)
      text(shortened(one.name, static_cast<std::size_t>(frame.width / kChar) - (boxes || column ? labels + 2 : 0)), x0,
           row + 10, Anchor::start, Ink::Role::text);
    else
      text(shortened(one.name, kLongest), x0 - 8, middle, Anchor::end, Ink::Role::text);
    bar(one, panel, px, middle);
    const Ink ink = one.failed ? Ink::Role::failure : Ink::Role::text;
    const bool drawn = std::isfinite(one.value);
    if (column || (boxes && above))
      text(one.label, frame.right() - 8, above ? row + 10 : middle, Anchor::end, ink);
    else if (boxes && drawn)
      text(one.label, px(one.inner), middle - kThick / 2 - 11, Anchor::middle, ink).size = 0.9;
    else
      text(one.label, (drawn ? px(bar_reach(one)) : x0) + 8, middle, Anchor::start, ink).halo = true;
  }
  line({{x0, foot}, {x1, foot}}, Ink::Role::note);
  text(panel.x_label, (x0 + x1) / 2, foot + 31, Anchor::middle, Ink::Role::note);
  return foot + 40;
}

void Layout::whisker(const Bar& bar, const Axis& px, double middle) {
  if (!std::isfinite(bar.low) || !std::isfinite(bar.high)) return;
  const double low = px(bar.low), high = px(bar.high);
  for (const bool halo : {true, false}) {
    const Ink ink = halo ? Ink::Role::paper : Ink::Role::text;
    const double width = halo ? 4 : 1.5;
    line({{low, middle}, {high, middle}}, ink, width);
    for (const double end : {low, high}) line({{end, middle - 4}, {end, middle + 4}}, ink, width);
  }
}

void Layout::bar(const Bar& bar, const Panel& panel, const Axis& px, double middle) {
  if (panel.style == Panel::Style::points) {
    if (std::isfinite(bar.low) && std::isfinite(bar.high))
      line({{px(bar.low), middle}, {px(bar.high), middle}}, bar.colour, 3).opacity = 0.55;
    if (shown_on(bar.value, panel.log_x)) dot(px(bar.value), middle, 4.5, bar.colour);
    return;
  }
  const bool boxes = panel.style == Panel::Style::boxes;
  const double top = middle - kThick / 2;
  if (boxes) whisker(bar, px, middle);
  if (std::isfinite(bar.value)) {
    const double start = std::max(px.from, px(bar.from));
    const double wide = std::max(px(bar.value) - start, boxes ? 3.0 : 0.0);  // a thin box is still seen
    box(start, top, wide, kThick, bar.colour, bar.failed ? 0.35 : 1);
  }
  if (!boxes) whisker(bar, px, middle);
  for (const double one : bar.dots) dot(px(one), middle, 2.2, bar.colour);
  if (!std::isfinite(bar.inner)) return;
  const double out = boxes ? 3 : 0;  // a median is seen beyond its box too
  if (boxes) line({{px(bar.inner), top - out}, {px(bar.inner), top + kThick + out}}, Ink::Role::paper, 5);
  line({{px(bar.inner), top - out}, {px(bar.inner), top + kThick + out}}, boxes ? Ink::Role::text : Ink::Role::paper,
       2.5);
}

double Layout::heat_map(const Panel& panel, const Frame& frame) {
  // Names that would leave too little room for the cells are placed above them.
  std::size_t longest = characters(panel.y_label);
  for (const std::string& row : panel.rows) longest = std::max(longest, characters(row));
  const auto beside = static_cast<std::size_t>(0.4 * frame.width / kChar);
  const bool above = frame.phone() && longest > beside;
  const std::size_t most = above ? static_cast<std::size_t>(frame.width / kChar) : std::max<std::size_t>(30, beside);
  const double x0 = above ? frame.left : frame.left + static_cast<double>(std::min(longest, most)) * kChar + 12;
  const double tall = panel.rows.size() > 12 ? 22 : 40, head = above ? 18 : 0, pitch = head + tall;
  const double wide = (frame.right() - x0) / static_cast<double>(std::max<std::size_t>(1, panel.columns.size()));
  const double y0 = frame.top + 2 * kLine + 6;
  if (above)
    text(panel.y_label, frame.left, frame.top + 9, Anchor::start, Ink::Role::note);
  else
    text(panel.y_label, x0 - 8, y0 - 13, Anchor::end, Ink::Role::note);
  text(panel.x_label, (x0 + frame.right()) / 2, frame.top + 9, Anchor::middle, Ink::Role::note);
  for (std::size_t i = 0; i < panel.columns.size(); ++i) {
    text(shortened(panel.columns[i], static_cast<std::size_t>(wide / kChar)),
         x0 + wide * (static_cast<double>(i) + 0.5), y0 - 13, Anchor::middle, Ink::Role::text);
  }
  for (std::size_t i = 0; i < panel.rows.size(); ++i) {
    const double y = y0 + pitch * static_cast<double>(i);
    const std::string name = shortened(panel.rows[i], most);
    if (above)
      text(name, frame.left, y + 9, Anchor::start, Ink::Role::text);
    else
      text(name, x0 - 8, y + tall / 2, Anchor::end, Ink::Role::text);
  }
  Range range;
  for (const Cell& cell : panel.cells) range.include(cell.value);
  for (const Cell& cell : panel.cells) {
    const double x = x0 + wide * static_cast<double>(cell.column),
                 y = y0 + pitch * static_cast<double>(cell.row) + head;
    if (std::isfinite(cell.value)) {
      const Shade shade = shade_of(cell.value, range, panel.reference);
      box(x + 1, y + 1, wide - 2, tall - 2, shade.ink, shade.tint);
    }
    if (cell.best) {
      const double right = x + wide - 3, bottom = y + tall - 3;
      line({{x + 3, y + 3}, {right, y + 3}, {right, bottom}, {x + 3, bottom}, {x + 3, y + 1.5}}, 5, 3);
    }
    if (static_cast<double>(characters(cell.label)) * kChar <= wide)  // otherwise its tint shows the value
      text(cell.label, x + wide / 2, y + tall / 2, Anchor::middle, Ink::Role::text).bold = cell.best;
  }
  const double end = y0 + pitch * static_cast<double>(panel.rows.size());
  if (range.empty() || range.flat()) return end + 4;
  return colour_key(range, panel, frame, end + 16) + 3;
}

/// The legend of the tints: five of them between the smallest and the largest value. Returns the position of a next
/// line.
double Layout::colour_key(const Range& range, const Panel& panel, const Frame& frame, double top) {
  const auto label = [&](double value) {
    const auto cell = std::ranges::find(panel.cells, value, &Cell::value);
    return cell == panel.cells.end() ? to_rounded_text(value, 4) : cell->label;
  };
  double x = frame.left;
  text(label(range.low), x, top, Anchor::start, Ink::Role::note),
      x += static_cast<double>(characters(label(range.low))) * kChar + 8;
  for (int i = 0; i < 5; ++i, x += 28) {
    const Shade shade = shade_of(range.low + (range.high - range.low) * i / 4, range, panel.reference);
    box(x, top - 6, 26, 12, shade.ink, shade.tint);
  }
  const std::string words = label(range.high) + (panel.key.empty() ? "" : ", " + panel.key);
  return paragraph(words, (frame.right() - x) / kChar, x + 6, top);
}

}  // namespace zs::figure
