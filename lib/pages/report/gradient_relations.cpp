// SPDX-License-Identifier: Apache-2.0
// Relations between gradients: of different layers, and of their norms with the loss.
#include <cmath>
#include <map>

#include "base/words.hpp"
#include "gradient/finding.hpp"
#include "report/gradient_tables.hpp"
#include "stat/columns.hpp"

namespace zs::report {
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
