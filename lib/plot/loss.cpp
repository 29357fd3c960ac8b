// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/number.hpp"
#include "plot/figures.hpp"

namespace zs::plot {
namespace {

std::string counted(std::size_t count, const std::string& noun) {
  return zs::to_text(static_cast<std::int64_t>(count)) + " " + noun + (count == 1 ? "" : "s");
}

Series curve(const Condition& condition) {
  Series series;
  series.name = condition.name;
  series.colour = condition.place;
  if (condition.bad()) series.note = condition.status;
  const metric::Table* const table = condition.curve;
  const metric::Column* const steps = table ? table->find("step") : nullptr;
  const metric::Column* const losses = table ? table->find("loss") : nullptr;
  if (!steps || !losses) return series;
  const metric::Column* const lows = table->find("loss_min");
  const metric::Column* const highs = table->find("loss_max");
  bool band = false;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    if (losses->absent(row) || steps->absent(row)) continue;
    series.x.push_back(steps->real(row));
    series.y.push_back(losses->real(row));
    series.low.push_back(lows ? lows->real(row) : kNone);
    series.high.push_back(highs ? highs->real(row) : kNone);
    band = band || series.high.back() > series.low.back();
  }
  if (!band) series.low.clear(), series.high.clear();
  return series;
}

/// What is said about curves that lie on one another.
std::string coincidence(const std::vector<Condition>& conditions, const std::vector<Series>& series) {
  const Agreement all = agreement(conditions);
  if (all.curves && all.digests && all.with_digest == all.with_curve) {
    return counted(all.with_curve, "condition") + ", identical to the last bit (state digest " + all.digest + ")";
  }
  if (all.curves) return counted(all.with_curve, "condition") + " with the same loss at every logged step";
  std::map<std::size_t, std::size_t> groups;
  for (const Series& one : series) {
    if (one.layers > 1 && one.layer == 0) ++groups[one.layers];
  }
  std::string text;
  for (const auto& [size, count] : groups) {
    text += (text.empty() ? "" : ", ") + (count > 1 ? counted(count, "group") + " of " : std::string()) + counted(size, "curve");
  }
  return text.empty() ? "" : "striped lines: " + text + " closer than the eye can see, not shown to be equal";
}

}  // namespace

Figure loss_figure(const std::vector<Condition>& conditions) {
  Panel panel;
  panel.x_label = "step";
  panel.y_label = "loss (nats/token)";
  std::size_t drawn = 0;
  for (const Condition& condition : conditions) {
    Series series = curve(condition);
    std::size_t bad = 0;
    for (const double y : series.y) bad += !std::isfinite(y);
    if (bad > 0) panel.notes.push_back(condition.name + ": " + counted(bad, "loss value") + " not finite");
    if (series.x.empty()) series.note += series.note.empty() ? "no loss" : ", no loss";
    drawn += !series.x.empty();
    panel.series.push_back(std::move(series));
  }
  if (drawn == 0) throw Error("no condition of the summary has a loss curve");
  stripe_coinciding(panel.series);
  const std::string note = coincidence(conditions, panel.series);
  if (!note.empty()) panel.notes.insert(panel.notes.begin(), note);
  return {"Training loss", {std::move(panel)}};
}

}  // namespace zs::plot
