// SPDX-License-Identifier: Apache-2.0
#include "plot/many.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/words.hpp"
#include "stat/alike.hpp"
#include "stat/outlier.hpp"

namespace zs::plot {
namespace {

constexpr std::size_t kFewestOfBox = 3;  // quartiles of fewer are those themselves
constexpr std::size_t kMostGroups = 8;
constexpr double kLeast = 0.01;  // relative: a smaller difference is not visible in a picture

/// The groups of like conditions, by their first runs; the largest first.
std::vector<stat::Alike> groups_of(const std::vector<Condition>& conditions) {
  std::vector<metric::Run> unknown(conditions.size());
  std::vector<const metric::Run*> runs;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    unknown[i].name = conditions[i].name;
    runs.push_back(conditions[i].members.empty() ? &unknown[i] : conditions[i].members.front().run);
  }
  std::vector<stat::Alike> groups = stat::alike(runs);
  std::ranges::stable_sort(groups, [](const auto& a, const auto& b) { return a.runs.size() > b.runs.size(); });
  return groups;
}

std::string sized(const stat::Alike& group, std::size_t size) {
  return group.label + " (" + std::to_string(size) + ")";
}

/// The members of a group with a value, and their fence.
struct Values {
  stat::Sample values;
  stat::Fence fence;
};
Values values_of(const stat::Alike& group, const std::vector<Condition>& conditions, const std::vector<double>& value) {
  Values made;
  for (const std::size_t i : group.runs) {
    if (std::isfinite(value[i]) && !conditions[i].bad()) made.values.push_back(value[i]);
  }
  made.fence = stat::fence(made.values, kLeast);
  return made;
}

void left_out(Panel& panel, std::size_t count, const std::string& why) {
  if (count > 0) panel.notes.push_back("left out: " + counted(count, "condition") + why);
}

/// The conditions that `lacks` says have none, by their groups: "left out without a value: titan_* (50), hf_* (2)".
template <typename Lacks>
void name_left_out(Panel& panel, const std::vector<Condition>& conditions, const std::string& what,
                   const Lacks& lacks) {
  std::vector<std::string> names;
  for (const stat::Alike& group : groups_of(conditions)) {
    const auto count = static_cast<std::size_t>(std::ranges::count_if(group.runs, lacks));
    if (count > 0) names.push_back(group.runs.size() == 1 ? conditions[group.runs[0]].name : sized(group, count));
  }
  if (!names.empty()) panel.notes.push_back("left out without a " + what + ": " + some_of(names, kMostNamed));
}

/// The spread of a group's curves at the steps that half of them have: with fewer the median jumps.
Series band_of(const std::map<double, stat::Sample>& steps, std::size_t members) {
  Series series;
  for (const auto& [x, values] : steps) {
    if (2 * values.size() < members) continue;
    series.x.push_back(x), series.y.push_back(stat::median(values));
    series.low.push_back(stat::quantile(values, 0.1)), series.high.push_back(stat::quantile(values, 0.9));
  }
  return series;
}

}  // namespace

bool gather_bars(Panel& panel, const std::vector<Condition>& conditions, const Unit& unit) {
  if (panel.bars.size() <= kMostBars) return false;
  std::vector<double> value;
  for (const Bar& bar : panel.bars) value.push_back(panel.style == Panel::Style::boxes ? bar.inner : bar.value);
  const auto has = [](double one) { return std::isfinite(one); };
  const auto with = static_cast<std::size_t>(std::ranges::count_if(value, has));
  std::vector<Bar> boxes, alone;
  std::size_t hidden = 0;
  const auto stand = [&](std::size_t i) {
    if (alone.size() >= kMostNamed) {
      ++hidden;
      return;
    }
    Bar bar = panel.bars[i];
    bar.colour = Ink(kMostGroups + alone.size());
    if (panel.style == Panel::Style::bars && has(value[i])) bar.from = bar.inner = value[i], bar.dots = {value[i]};
    alone.push_back(std::move(bar));
  };
  if (with <= kMostBars) {
    std::vector<Bar> kept;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (has(value[i])) kept.push_back(std::move(panel.bars[i]));
    }
    panel.bars = std::move(kept);
    name_left_out(panel, conditions, "value", [&](std::size_t i) { return !has(value[i]); });
    return false;
  }
  const std::vector<stat::Alike> groups = groups_of(conditions);
  for (std::size_t place = 0; place < groups.size(); ++place) {
    const Values of_group = values_of(groups[place], conditions, value);
    const bool box = of_group.values.size() >= kFewestOfBox && boxes.size() < kMostGroups;
    if (box) {
      const auto at = [&](double share) { return stat::quantile(of_group.values, share); };
      Bar bar;
      bar.name = sized(groups[place], of_group.values.size()), bar.colour = Ink(boxes.size());
      bar.from = at(0.25), bar.value = at(0.75), bar.inner = at(0.5), bar.low = at(0.05), bar.high = at(0.95);
      for (const double one : of_group.values) {
        if (!(one >= bar.low && one <= bar.high)) bar.dots.push_back(one);
      }
      bar.label = unit.text(bar.inner * unit.factor);
      boxes.push_back(std::move(bar));
    }
    for (const std::size_t i : groups[place].runs) {
      if (!has(value[i])) continue;
      if (conditions[i].bad() || of_group.fence.outside(value[i]))
        stand(i);
      else if (!box)
        ++hidden;
    }
  }
  panel.style = Panel::Style::boxes;
  panel.bars = std::move(boxes);
  panel.bars.insert(panel.bars.end(), std::make_move_iterator(alone.begin()), std::make_move_iterator(alone.end()));
  panel.notes = {
      "box: the middle half of like conditions, its mark and the number their median; lines: 5 to 95 %; "
      "dots: those beyond; below, alone: those that failed or stand out from the ones like them"};
  name_left_out(panel, conditions, "value", [&](std::size_t i) { return !has(value[i]); });
  left_out(panel, hidden, ", for want of room");
  return true;
}

bool gather_curves(Panel& panel, const std::vector<Condition>& conditions) {
  if (panel.series.size() <= kMostCurves || panel.series.size() != conditions.size()) return false;
  std::vector<double> ends;
  for (const Series& series : panel.series) {
    const auto last = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, series.y.size() / 10));
    ends.push_back(series.y.empty() ? kNone : stat::mean({series.y.end() - last, series.y.end()}));
  }
  std::vector<Series> bands, failed, apart;
  std::size_t hidden = 0;
  name_left_out(panel, conditions, "curve", [&](std::size_t i) { return panel.series[i].x.empty(); });
  for (const stat::Alike& group : groups_of(conditions)) {
    const Values of_group = values_of(group, conditions, ends);
    const bool band = of_group.values.size() >= kFewestOfBox && bands.size() < kMostGroups;
    std::map<double, stat::Sample> steps;
    for (const std::size_t i : group.runs) {
      const Series& series = panel.series[i];
      if (series.x.empty()) continue;
      const std::vector<double>& logged = series.raw.empty() ? series.y : series.raw;
      for (std::size_t row = 0; band && row < series.x.size(); ++row) {
        if (std::isfinite(logged[row])) steps[series.x[row]].push_back(logged[row]);
      }
      if (conditions[i].bad())
        failed.push_back(series);
      else if (of_group.fence.outside(ends[i]))
        apart.push_back(series);
      else
        hidden += !band;
    }
    if (!band) continue;
    bands.push_back(band_of(steps, of_group.values.size()));
    bands.back().name = sized(group, of_group.values.size()), bands.back().colour = Ink(bands.size() - 1);
  }
  std::size_t named = 0;
  const std::size_t groups = bands.size();
  for (std::vector<Series>* const list : {&failed, &apart}) {
    for (Series& series : *list) {
      if (named == kMostNamed) {
        ++hidden;
        continue;
      }
      series.colour = Ink(groups + named++), series.rest = false, series.raw.clear();
      series.low.clear(), series.high.clear();
      bands.push_back(std::move(series));
    }
  }
  // Findings come first in the legend, and last in the picture: in front.
  for (std::size_t i = 0; i < groups; ++i) bands[i].behind = true;
  std::stable_partition(bands.begin(), bands.end(), [](const Series& one) { return !one.behind; });
  panel.series = std::move(bands);
  panel.notes.push_back(
      "bands: 10 to 90 % of like conditions at each step; line: their median" +
      std::string(named > 0 ? "; drawn alone: those that failed or end apart from the ones like them" : ""));
  left_out(panel, hidden, ", for want of room");
  return true;
}

}  // namespace zs::plot
