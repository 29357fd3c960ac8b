// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"
#include "plot/figures.hpp"
#include "plot/unit.hpp"

namespace zs::plot {
namespace {

/// A bar without a value yet: what its label says then.
Bar empty_bar(const Condition& condition, const std::string& missing) {
  Bar bar;
  bar.name = condition.name;
  bar.colour = condition.place;
  bar.failed = condition.bad();
  bar.label = condition.bad() ? condition.status : missing;
  return bar;
}

}  // namespace

Figure time_figure(const std::vector<Condition>& conditions, const std::string& warmup) {
  double largest = 0;
  for (const Condition& condition : conditions) {
    if (condition.time_mean && std::isfinite(*condition.time_mean)) largest = std::max(largest, *condition.time_mean);
  }
  if (largest == 0) throw Error("no condition of the summary has an iteration time");
  const Unit unit = time_unit(largest);
  Panel panel;
  panel.x_label = "mean iteration time (" + unit.name + ")";
  bool intervals = false;
  for (const Condition& condition : conditions) {
    Bar bar = empty_bar(condition, "no time");
    if (condition.time_mean) {
      bar.value = *condition.time_mean / unit.factor;
      bar.label = unit.text(*condition.time_mean);
      if (condition.time_low && condition.time_high && std::isfinite(*condition.time_low) && std::isfinite(*condition.time_high)) {
        bar.low = *condition.time_low / unit.factor;
        bar.high = *condition.time_high / unit.factor;
        bar.label = unit.number(*condition.time_mean) + " ± " + unit.text((*condition.time_high - *condition.time_low) / 2, 2);
        intervals = true;
      }
      if (condition.bad()) bar.label += "  " + condition.status;
    }
    panel.bars.push_back(std::move(bar));
  }
  if (intervals) panel.notes.push_back("± and error bars: 95 % interval of the mean over steps");
  if (!warmup.empty()) panel.notes.push_back("warm-up: " + warmup);
  return {"Iteration time", {std::move(panel)}};
}

Figure memory_figure(const std::vector<Condition>& conditions) {
  std::int64_t largest = 0;
  for (const Condition& condition : conditions) largest = std::max(largest, condition.peak_mem.value_or(0));
  if (largest == 0) throw Error("no condition of the summary has a peak memory");
  const Unit unit = bytes_unit(static_cast<double>(largest));
  Panel panel;
  panel.x_label = "peak memory of a rank (" + unit.name + ")";
  bool inner = false;
  for (const Condition& condition : conditions) {
    Bar bar = empty_bar(condition, "no memory");
    if (condition.peak_mem) {
      bar.value = static_cast<double>(*condition.peak_mem) / unit.factor;
      bar.label = unit.text(static_cast<double>(*condition.peak_mem));
      if (condition.alloc_mem) bar.inner = static_cast<double>(*condition.alloc_mem) / unit.factor;
      inner = inner || condition.alloc_mem.has_value();
      if (condition.bad()) bar.label += "  " + condition.status;
    }
    panel.bars.push_back(std::move(bar));
  }
  if (inner) panel.notes.push_back("mark inside a bar: memory allocated (alloc_mem)");
  return {"Peak memory", {std::move(panel)}};
}

}  // namespace zs::plot
