// SPDX-License-Identifier: Apache-2.0
#include "plot/gradients.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "figure/theme.hpp"
#include "plot/curve.hpp"

namespace zs::plot {
namespace {

using gradient::Finding;
using gradient::History;
using gradient::Measure;

/// `count` of the places, evenly, the first and the last among them.
std::vector<std::size_t> spread(const std::vector<std::size_t>& places, std::size_t count) {
  if (places.size() <= count) return places;
  if (count == 1) return {places.front()};
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(places[(i * (places.size() - 1) + (count - 1) / 2) / (count - 1)]);
  return chosen;
}

/// "0.0123", and what is wrong with the layer.
std::string label(const Measure& layer, const std::optional<Finding>& finding) {
  if (layer.non_finite() > 0) {
    std::string text;
    if (layer.nans > 0) text = zs::to_text(layer.nans) + " nan";
    if (layer.infinities > 0) text += (text.empty() ? "" : ", ") + zs::to_text(layer.infinities) + " inf";
    return text;
  }
  return (layer.all_zero() ? "0" : to_rounded_text(layer.norm(), 4)) +
         (finding ? "  " + gradient::name(finding->trouble) : "");
}

Panel bars(const History& history, const std::vector<Finding>& findings, const std::vector<std::size_t>& shown) {
  const std::size_t last = history.checkpoints.size() - 1;
  const bool all_drawn = shown.size() == history.layers.size();
  Panel panel;
  panel.title = "At " + history.when(last);
  panel.x_label = "L2 norm of the gradient of a " + noun(history);
  panel.style = Panel::Style::points;
  panel.log_x = true;
  std::size_t zero = 0;
  for (std::size_t layer = 0; layer < history.layers.size(); ++layer) {
    const Measure& measure = history.checkpoints[last].layers[layer];
    const auto finding = gradient::at(findings, last, layer);
    Bar bar;
    bar.name = history.layers[layer].name;
    bar.colour = all_drawn ? Ink(layer) : Ink(0);
    bar.failed = finding.has_value();
    bar.label = label(measure, finding);
    if (std::isfinite(measure.norm())) bar.value = measure.norm();
    Range range;  // a logarithmic axis has no place for 0
    zero += measure.norm() == 0;
    for (const auto& checkpoint : history.checkpoints) {
      if (checkpoint.layers[layer].norm() > 0) range.include(checkpoint.layers[layer].norm());
    }
    if (last > 0 && !range.empty()) bar.low = range.low, bar.high = range.high;
    panel.bars.push_back(std::move(bar));
  }
  if (last > 0)
    panel.notes.push_back("dot: now; line: smallest to largest over " +
                          counted(history.checkpoints.size(), "checkpoint"));
  if (zero > 0) panel.notes.push_back(counted(zero, noun(history)) + " at 0, which a logarithmic axis cannot show");
  return panel;
}

/// A curve over the checkpoints for each layer that is shown; `value` of a checkpoint and a layer.
template <typename Value>
void add_curves(const History& history, const std::vector<std::size_t>& shown, std::size_t first, Value value,
                Panel& panel) {
  panel.x_label = history.by_step ? "step" : "checkpoint, in the order given";
  for (std::size_t i = 0; i < shown.size(); ++i) {
    Series series;
    series.name = history.layers[shown[i]].name;
    series.colour = Ink(i);
    for (std::size_t checkpoint = first; checkpoint < history.checkpoints.size(); ++checkpoint) {
      series.x.push_back(history.place(checkpoint));
      series.y.push_back(value(checkpoint, shown[i]));
    }
    panel.series.push_back(std::move(series));
  }
  // If few checkpoints are close together, numbers at each of them would overlap.
  constexpr std::size_t kFew = 8;
  if (history.checkpoints.size() - first <= kFew && !history.by_step) panel.x_ticks = panel.series.front().x;
  if (shown.size() < history.layers.size())
    panel.notes.push_back("curves of " + counted(shown.size(), noun(history)) + " of " +
                          std::to_string(history.layers.size()));
}

/// For a deep model: layer by checkpoint, tinted by the norm's logarithm.
Panel depth_map(const History& history) {
  constexpr std::size_t kMostColumns = 12;
  std::vector<std::size_t> columns(history.checkpoints.size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  Panel panel;
  panel.title = "Norms by " + noun(history) + " and checkpoint";
  panel.x_label = history.by_step ? "step" : "checkpoint, in the order given", panel.y_label = noun(history);
  panel.key = "L2 norm; tinted by its logarithm";
  const std::vector<std::size_t> shown = spread(columns, kMostColumns);
  for (const auto& layer : history.layers) panel.rows.push_back(layer.name);
  for (std::size_t column = 0; column < shown.size(); ++column) {
    panel.columns.push_back(zs::to_text(history.place(shown[column])));
    for (std::size_t row = 0; row < history.layers.size(); ++row) {
      const double norm = history.checkpoints[shown[column]].layers[row].norm();
      panel.cells.push_back({column, row, norm > 0 ? std::log(norm) : kNone, to_rounded_text(norm, 2)});
    }
  }
  if (shown.size() < columns.size())
    panel.notes.push_back(counted(shown.size(), "checkpoint") + " of " + std::to_string(columns.size()));
  return panel;
}

Panel evolution(const History& history, const std::vector<Finding>& findings, const std::vector<std::size_t>& shown) {
  Panel panel;
  panel.title = "Over the checkpoints";
  panel.y_label = "L2 norm of the gradient of a " + noun(history);
  panel.log_y = true;
  add_curves(
      history, shown, 0,
      [&](std::size_t checkpoint, std::size_t layer) { return history.checkpoints[checkpoint].layers[layer].norm(); },
      panel);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    std::size_t not_finite = 0, zero = 0;
    std::set<std::string> troubles;
    for (const Finding& finding : findings) {
      if (finding.layer == shown[i]) troubles.insert(gradient::name(finding.trouble));
    }
    for (const std::string& trouble : troubles)
      panel.series[i].note += (panel.series[i].note.empty() ? "" : ", ") + trouble;
    for (const double y : panel.series[i].y) not_finite += !std::isfinite(y), zero += y == 0;
    if (not_finite > 0)
      panel.notes.push_back(panel.series[i].name + ": not finite at " + counted(not_finite, "checkpoint"));
    if (zero > 0)
      panel.notes.push_back(panel.series[i].name + ": zero at " + counted(zero, "checkpoint") +
                            ", which a logarithmic axis cannot show");
  }
  figure::stripe_coinciding(panel.series, 0.004, true);
  return panel;
}

}  // namespace

std::string noun(const History& history) {
  const bool tensors = std::ranges::all_of(history.layers, [&](const gradient::Layer& layer) {
    const auto is_it = [&](std::size_t place) { return history.names[place] == layer.name; };
    return std::ranges::all_of(layer.tensors, is_it);
  });
  return tensors ? "tensor" : "layer";
}

std::vector<std::size_t> shown_layers(const History& history) {
  const std::size_t most = figure::Theme().palette.size();
  std::vector<std::size_t> blocks, others;
  std::set<std::size_t> chosen;
  for (std::size_t layer = 0; layer < history.layers.size(); ++layer)
    (history.layers[layer].block ? blocks : others).push_back(layer);
  if (history.layers.size() <= most) {
    chosen.insert(others.begin(), others.end());
    chosen.insert(blocks.begin(), blocks.end());
    return {chosen.begin(), chosen.end()};
  }
  for (const Finding& finding : gradient::worst_first(gradient::findings(history))) {
    if (chosen.size() < most) chosen.insert(finding.layer);
  }
  // At least half of the places for blocks: they are the depth of the model.
  const auto fill = [&](const std::vector<std::size_t>& layers, std::size_t places) {
    if (places == 0) return;
    for (const std::size_t layer : spread(layers, places)) {
      if (chosen.size() < most) chosen.insert(layer);
    }
  };
  fill(others, std::min(others.size(), (most - std::min(most, chosen.size())) / 2));
  fill(blocks, most - std::min(most, chosen.size()));
  fill(others, most - std::min(most, chosen.size()));
  return {chosen.begin(), chosen.end()};
}

Figure gradient_figure(const History& history) {
  if (history.checkpoints.empty()) throw Error("no checkpoint with gradients is given");
  const std::vector<Finding> findings = gradient::findings(history);
  const std::vector<std::size_t> shown = shown_layers(history);
  Figure figure{"Gradients of " + history.subject, {bars(history, findings, shown)}};
  if (history.checkpoints.size() > 1) figure.panels.push_back(evolution(history, findings, shown));
  if (history.checkpoints.size() > 1 && shown.size() < history.layers.size())
    figure.panels.push_back(depth_map(history));
  figure.panels.back().notes.emplace_back("of the mean gradient, before clipping");
  for (const std::string& name : history.missing)
    figure.panels.back().notes.push_back(name + ": in no checkpoint, taken as 0");
  if (!history.without.empty())
    figure.panels.back().notes.push_back(counted(history.without.size(), "checkpoint") + " without gradients left out");
  return figure;
}

Figure cosine_figure(const History& history) {
  Panel panel;
  panel.y_label = "cosine with the gradient of the checkpoint before";
  add_curves(
      history, shown_layers(history), 1,
      [&](std::size_t checkpoint, std::size_t layer) { return history.layer_cosine(checkpoint, layer); }, panel);
  figure::stripe_coinciding(panel.series);
  return {"Direction of the gradients of " + history.subject, {std::move(panel)}};
}

}  // namespace zs::plot
