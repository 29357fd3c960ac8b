// SPDX-License-Identifier: Apache-2.0
#include "report/gradient_tables.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/number.hpp"
#include "base/words.hpp"
#include "gradient/finding.hpp"
#include "plot/gradients.hpp"
#include "report/words.hpp"
#include "stat/columns.hpp"

namespace zs::report {
namespace {

using gradient::Finding;
using gradient::History;
using gradient::Measure;

constexpr std::size_t kMostColumns = 10;  // checkpoints side by side in a table

Cell number(double value) { return {Text(to_brief_text(value, 4)), value}; }
Cell whole(std::int64_t value) { return {Text(to_text(value)), static_cast<double>(value)}; }
Cell word(const std::string& text) { return {Text(code(text))}; }
/// A cosine; "-" where there is none.
/// A variance or a noise scale; "-" where micro-batches say nothing.
Cell noise_cell(double value) { return std::isnan(value) ? Cell{Text("-")} : number(value); }
Cell share(std::int64_t part, std::int64_t total) {
  if (total == 0) return {Text("-")};
  const double ratio = static_cast<double>(part) / static_cast<double>(total);
  return {Text(part == 0 ? "0 %" : percent(ratio)), ratio};
}
Cell non_finite_cell(std::int64_t count) {
  return count == 0 ? whole(0) : Cell{Text(bad(to_text(count))), static_cast<double>(count)};
}

/// Checkpoints that tables show side by side: all, or some evenly, the last among them.
std::vector<std::size_t> columns(const History& history, std::size_t first) {
  const std::size_t count = history.checkpoints.size() - first;
  std::vector<std::size_t> chosen;
  const std::size_t most = std::min(count, kMostColumns);
  for (std::size_t i = 0; i < most; ++i)
    chosen.push_back(first + (most == 1 ? count - 1 : i * (count - 1) / (most - 1)));
  return chosen;
}

/// A row for each layer, a column for each of some checkpoints.
template <typename Value>
Grid by_checkpoint(const History& history, const std::string& title, std::size_t first, Value value) {
  Grid grid{title, {"layer"}, {false}, {}};
  const std::vector<std::size_t> shown = columns(history, first);
  for (const std::size_t i : shown) {
    const std::string place = to_text(static_cast<std::int64_t>(history.place(i)));
    grid.header.push_back(history.by_step ? "step " + place : place);
    grid.numeric.push_back(true);
  }
  for (std::size_t layer = 0; layer < history.layers.size(); ++layer) {
    std::vector<Cell> row = {word(history.layers[layer].name)};
    for (const std::size_t i : shown) row.push_back(value(i, layer));
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

/// Columns about the variation among the micro-batches of a step, before column `at`, if their norms were saved.
template <typename NoiseOf>
void add_noise(const History& history, std::size_t checkpoint, Grid& grid, std::size_t at, const NoiseOf& noise_of) {
  if (history.checkpoints[checkpoint].micro_batches < 2) return;
  const auto place = static_cast<std::ptrdiff_t>(at);
  grid.header.insert(grid.header.begin() + place, {"variance over micro-batches", "noise scale"});
  grid.numeric.insert(grid.numeric.begin() + place, 2, true);
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    const gradient::Noise noise = noise_of(row);
    grid.rows[row].insert(grid.rows[row].begin() + place, {noise_cell(noise.variance), noise_cell(noise.scale)});
  }
}

std::string folder_of_run(const gradient::Checkpoint& checkpoint) {
  return std::filesystem::path(checkpoint.source.path).parent_path().parent_path().string();
}

}  // namespace

Cell angle(double value) { return std::isnan(value) ? Cell{Text("-")} : Cell{Text(to_rounded_text(value, 3)), value}; }

Section layer_section(const History& history, const std::vector<Finding>& findings) {
  const std::size_t last = history.checkpoints.size() - 1;
  const auto& now = history.checkpoints[last];
  const double median = gradient::median_rms(now);
  Section section{"Layers", {}};
  section.blocks.emplace_back(Paragraph{"At " + history.when(last) +
                                        ". The variance is that of the finite values around their mean; the "
                                        "cosine is with the gradient of the checkpoint before."});
  Grid grid{"",
            {"layer", "values", "norm", "RMS", "RMS / median", "variance", "largest", "zero", "not finite", "cosine",
             "verdict"},
            {false, true, true, true, true, true, true, true, true, true, false},
            {}};
  for (std::size_t layer = 0; layer < history.layers.size(); ++layer) {
    const Measure& measure = now.layers[layer];
    const auto finding = gradient::at(findings, last, layer);
    grid.rows.push_back({word(history.layers[layer].name),
                         whole(measure.count),
                         number(measure.norm()),
                         number(measure.rms()),
                         angle(measure.rms() / median),
                         number(measure.variance()),
                         number(measure.largest),
                         share(measure.zeros, measure.count),
                         non_finite_cell(measure.non_finite()),
                         angle(history.layer_cosine(last, layer)),
                         {finding ? Text(bad(gradient::name(finding->trouble))) : Text("sound")}});
  }
  add_noise(history, last, grid, grid.header.size() - 1,
            [&](std::size_t layer) { return history.layer_noise(last, layer); });
  section.blocks.emplace_back(std::move(grid));
  return section;
}

Section checkpoint_section(const History& history, const LoggedNorms& log) {
  Section section{"Checkpoints", {}};
  std::set<std::string> folders;
  for (const auto& checkpoint : history.checkpoints) folders.insert(folder_of_run(checkpoint));
  if (folders.size() == 1)
    section.blocks.emplace_back(Paragraph{Text("In ") + Text(code(*folders.begin())) + Text(":")});
  Grid grid{"",
            {history.by_step ? "step" : "number", "checkpoint", "norm", "norm logged", "RMS", "variance", "largest",
             "zero", "not finite", "cosine"},
            {true, false, true, true, true, true, true, true, true, true},
            {}};
  for (std::size_t i = 0; i < history.checkpoints.size(); ++i) {
    const auto& checkpoint = history.checkpoints[i];
    grid.rows.push_back({whole(static_cast<std::int64_t>(history.place(i))),
                         word(folders.size() == 1 ? checkpoint.source.checkpoint : checkpoint.source.path),
                         number(checkpoint.whole.norm()), log.known[i] ? number(log.norms[i]) : Cell{Text("-")},
                         number(checkpoint.whole.rms()), number(checkpoint.whole.variance()),
                         number(checkpoint.whole.largest), share(checkpoint.whole.zeros, checkpoint.whole.count),
                         non_finite_cell(checkpoint.whole.non_finite()), angle(history.cosine(i))});
  }
  section.blocks.emplace_back(std::move(grid));
  section.blocks.emplace_back(by_checkpoint(history, "Norm of each layer", 0, [&](std::size_t i, std::size_t layer) {
    return number(history.checkpoints[i].layers[layer].norm());
  }));
  if (columns(history, 0).size() < history.checkpoints.size()) {
    section.blocks.emplace_back(Paragraph{"Of " + counted(history.checkpoints.size(), "checkpoint") +
                                          " the table shows " + std::to_string(kMostColumns) +
                                          "; the figures and the findings are of all."});
  }
  if (!history.without.empty()) {
    section.blocks.emplace_back(
        Paragraph{"Without gradients, and so left out (--save_gradients false, or saved on a "
                  "signal by a zs-train that did not save them then):"});
    List list;
    for (const std::string& path : history.without) list.items.emplace_back(code(path));
    section.blocks.emplace_back(std::move(list));
  }
  return section;
}

Section direction_section(const History& history) {
  Section section{"Direction", {}};
  section.blocks.emplace_back(Paragraph{
      "The cosine between the gradient of a layer at a checkpoint and at the one before: 1 is the same "
      "direction, 0 none in common, below 0 they work against each other. \"-\": one is zero or not finite."});
  section.blocks.emplace_back(Picture{"gradient_cosine", "cosine of the gradients of consecutive checkpoints by layer",
                                      plot::cosine_figure(history)});
  section.blocks.emplace_back(by_checkpoint(history, "Cosine of each layer", 1, [&](std::size_t i, std::size_t layer) {
    return angle(history.layer_cosine(i, layer));
  }));
  return section;
}

Section tensor_section(const History& history) {
  const std::size_t last = history.checkpoints.size() - 1;
  const auto& now = history.checkpoints[last];
  Section section{"Tensors", {}};
  section.blocks.emplace_back(Paragraph{"At " + history.when(last) + "."});
  Grid grid{"",
            {"tensor", "shape", "norm", "RMS", "variance", "largest", "zero", "not finite", "cosine"},
            {false, true, true, true, true, true, true, true, true},
            {}};
  for (std::size_t tensor = 0; tensor < history.names.size(); ++tensor) {
    const Measure& measure = now.tensors[tensor];
    grid.rows.push_back({word(history.names[tensor]),
                         {Text(tensorfile::to_text(history.shapes[tensor])), static_cast<double>(measure.count)},
                         number(measure.norm()),
                         number(measure.rms()),
                         number(measure.variance()),
                         number(measure.largest),
                         share(measure.zeros, measure.count),
                         non_finite_cell(measure.non_finite()),
                         angle(history.tensor_cosine(last, tensor))});
  }
  add_noise(history, last, grid, grid.header.size(),
            [&](std::size_t tensor) { return history.tensor_noise(last, tensor); });
  section.blocks.emplace_back(std::move(grid));
  return section;
}

// Relations between gradients: of different layers, and of their norms with the loss.

namespace {

using gradient::History;

/// Pearson's correlation of the finite pairs; nan with fewer than three, and if one is constant.
double correlation(const std::vector<double>& x, const std::vector<double>& y, std::size_t& pairs) {
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  pairs = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    ++pairs;
    const double n = static_cast<double>(pairs), dx = x[i] - mean_x, dy = y[i] - mean_y;
    mean_x += dx / n, mean_y += dy / n;
    xx += dx * (x[i] - mean_x), yy += dy * (y[i] - mean_y), xy += dx * (y[i] - mean_y);
  }
  return pairs < 3 || !(xx > 0) || !(yy > 0) ? std::nan("") : xy / std::sqrt(xx * yy);
}

/// A column of the run's metrics at the step of each checkpoint, the last value up to it; nan if there is none.
std::vector<double> logged(const History& history, const LoggedRuns& runs, const std::string& column) {
  std::vector<double> values;
  std::map<const metric::Run*, std::vector<stat::ColumnPoint>> points;
  for (const auto& checkpoint : history.checkpoints) {
    const metric::Run* const run = runs.of(checkpoint.source);
    if (run && points.count(run) == 0) points[run] = stat::column_points(*run, column);
    double value = std::nan("");
    for (const stat::ColumnPoint& point : points[run]) {
      if (checkpoint.source.step && point.step <= *checkpoint.source.step) value = point.value;
    }
    values.push_back(value);
  }
  return values;
}

}  // namespace

std::optional<Section> between_section(const History& history) {
  constexpr std::size_t kMost = 12;
  const std::size_t last = history.checkpoints.size() - 1;
  const gradient::Between found = gradient::between(history, last, kMost);
  if (found.layers.empty()) return {};
  Section section{"Between layers", {}};
  section.blocks.emplace_back(Paragraph{"At " + history.when(last) +
                                        ", the cosine between the gradients of layers of one shape: near 0 they learn "
                                        "different things, near 1 the same."});
  Grid grid{"", {"layer"}, {false}, {}};
  for (const std::size_t layer : found.layers) {
    grid.header.push_back(history.layers[layer].name);
    grid.numeric.push_back(true);
  }
  for (std::size_t row = 0; row < found.layers.size(); ++row) {
    std::vector<Cell> cells = {{Text(code(history.layers[found.layers[row]].name))}};
    for (std::size_t column = 0; column < found.layers.size(); ++column)
      cells.push_back(angle(found.cosine(row, column)));
    grid.rows.push_back(std::move(cells));
  }
  section.blocks.emplace_back(std::move(grid));
  if (found.left_out > 0)
    section.blocks.emplace_back(Paragraph{counted(found.left_out, "layer") + " of that shape left out."});
  return section;
}

std::optional<Section> loss_relation_section(const History& history, const LoggedRuns& runs) {
  const std::vector<double> train = logged(history, runs, "loss"), valid = logged(history, runs, "valid_loss");
  Grid grid{"",
            {"layer", "with the training loss", "checkpoints", "with the validation loss", "checkpoints"},
            {false, true, true, true, true},
            {}};
  bool any = false;
  for (std::size_t layer = 0; layer < history.layers.size(); ++layer) {
    std::vector<double> norms;
    for (const auto& checkpoint : history.checkpoints) norms.push_back(checkpoint.layers[layer].norm());
    std::vector<Cell> row = {{Text(code(history.layers[layer].name)), static_cast<double>(layer)}};
    for (const auto* const losses : {&train, &valid}) {
      std::size_t pairs = 0;
      const double r = correlation(norms, *losses, pairs);
      any = any || !std::isnan(r);
      row.push_back(angle(r));
      row.push_back({Text(std::to_string(pairs)), static_cast<double>(pairs)});
    }
    grid.rows.push_back(std::move(row));
  }
  if (!any) return {};
  Section section{"With the loss", {}};
  section.blocks.emplace_back(Paragraph{
      "Pearson's correlation of the norm of each layer's gradient with the loss, over the checkpoints: 1 they "
      "fall together, -1 one rises where the other falls. Of few checkpoints it says little."});
  section.blocks.emplace_back(std::move(grid));
  return section;
}

}  // namespace zs::report
