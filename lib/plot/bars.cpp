// SPDX-License-Identifier: Apache-2.0
// The figures of bars: time and its distribution, memory, throughput, final loss.
#include "plot/bars.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"

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

double finite(const std::optional<double>& value) { return value && std::isfinite(*value) ? *value : kNone; }

/// "565.0 ± 1.7 ms", or without an interval "565.0 ms"; a failed condition's status follows.
std::string label(const Unit& unit, double value, double low, double high, const Condition& condition) {
  std::string text = unit.text(value);
  if (std::isfinite(low) && std::isfinite(high)) text = unit.number(value) + " ± " + unit.text((high - low) / 2, 2);
  return text + (condition.bad() ? "  " + condition.status : "");
}

/// Iteration times of a condition that its statistics are made of, ascending.
stat::Sample times_of(const Condition& condition) {
  stat::Sample all;
  for (const summary::Member& member : condition.members) {
    const stat::Sample times = member.times();
    all.insert(all.end(), times.begin(), times.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

Panel time_panel(const std::vector<Condition>& conditions, const Options& options) {
  double largest = 0;
  for (const Condition& condition : conditions) largest = std::fmax(largest, finite(condition.time_mean));
  if (largest == 0) throw Error("no condition of the summary has an iteration time");
  const Unit unit = summary::time_unit(largest);
  Panel panel;
  panel.x_label = "mean iteration time (" + unit.name + ")";
  bool intervals = false;
  for (const Condition& condition : conditions) {
    Bar bar = empty_bar(condition, "no time");
    if (condition.time_mean) {
      const double low = finite(condition.time_low), high = finite(condition.time_high);
      bar.value = *condition.time_mean / unit.factor;
      bar.low = low / unit.factor, bar.high = high / unit.factor;
      bar.label = label(unit, *condition.time_mean, low, high, condition);
      intervals = intervals || (std::isfinite(low) && std::isfinite(high));
    }
    panel.bars.push_back(std::move(bar));
  }
  const auto repeated = static_cast<std::size_t>(std::count_if(
      conditions.begin(), conditions.end(), [](const Condition& condition) { return condition.runs.value_or(1) > 1; }));
  const char* const over = repeated == 0                   ? "steps"
                           : repeated == conditions.size() ? "runs"
                                                           : "runs, or steps of a single one";
  if (intervals) panel.notes.push_back(std::string("± and error bars: 95 % interval of the mean over ") + over);
  if (!options.warmup.empty()) panel.notes.push_back("warm-up: " + options.warmup);
  return panel;
}

Panel memory_panel(const std::vector<Condition>& conditions) {
  std::int64_t largest = 0;
  for (const Condition& condition : conditions) largest = std::max(largest, condition.peak_mem.value_or(0));
  if (largest == 0) throw Error("no condition of the summary has a peak memory");
  const Unit unit = summary::bytes_unit(static_cast<double>(largest));
  Panel panel;
  panel.x_label = "peak memory of a rank (" + unit.name + ")";
  bool inner = false;
  for (const Condition& condition : conditions) {
    Bar bar = empty_bar(condition, "no memory");
    if (condition.peak_mem) {
      bar.value = static_cast<double>(*condition.peak_mem) / unit.factor;
      bar.label = label(unit, static_cast<double>(*condition.peak_mem), kNone, kNone, condition);
      if (condition.alloc_mem) bar.inner = static_cast<double>(*condition.alloc_mem) / unit.factor;
      inner = inner || condition.alloc_mem.has_value();
    }
    panel.bars.push_back(std::move(bar));
  }
  if (inner) panel.notes.emplace_back("mark inside a bar: memory allocated (alloc_mem)");
  return panel;
}

Panel final_loss_panel(const std::vector<Condition>& conditions) {
  Panel panel;
  panel.x_label = "final loss (nats/token)";
  bool any = false, spread = false;
  for (const Condition& condition : conditions) {
    Bar bar = empty_bar(condition, "no loss");
    if (condition.final_loss) {
      any = true;
      bar.value = finite(condition.final_loss);
      bar.label = to_rounded_text(*condition.final_loss, 5) + (condition.bad() ? "  " + condition.status : "");
      Range range;
      for (const summary::Member& member : condition.members) {
        if (member.final_loss) range.include(*member.final_loss);
      }
      if (condition.members.size() > 1 && !range.empty()) bar.low = range.low, bar.high = range.high, spread = true;
    }
    panel.bars.push_back(std::move(bar));
  }
  if (!any) throw Error("no condition of the summary has a final loss");
  if (spread) panel.notes.emplace_back("error bars: smallest to largest over the runs");
  return panel;
}

Figure time_figure(const std::vector<Condition>& conditions, const Options& options) {
  return {"Iteration time", {time_panel(conditions, options)}};
}

Figure memory_figure(const std::vector<Condition>& conditions, const Options&) {
  return {"Peak memory", {memory_panel(conditions)}};
}

Figure distribution_figure(const std::vector<Condition>& conditions, const Options& options) {
  std::vector<stat::Sample> all;
  double largest = 0;
  for (const Condition& condition : conditions) {
    all.push_back(times_of(condition));
    if (!all.back().empty()) largest = std::max(largest, all.back().back());
  }
  if (largest == 0) throw Error("no run of the summary has iteration times");
  const Unit unit = summary::time_unit(largest);
  Panel panel;
  panel.boxes = true;
  panel.x_label = "iteration time (" + unit.name + ")";
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    Bar bar = empty_bar(conditions[i], "no time");
    const stat::Sample& times = all[i];
    if (!times.empty()) {
      const auto at = [&](double share) { return stat::quantile(times, share) / unit.factor; };
      bar.from = at(0.25), bar.value = at(0.75), bar.inner = at(0.5), bar.low = at(0.05), bar.high = at(0.95);
      for (const double time : times) {
        if (!(time / unit.factor >= bar.low && time / unit.factor <= bar.high)) bar.dots.push_back(time / unit.factor);
      }
      bar.label = unit.text(stat::quantile(times, 0.5)) + (conditions[i].bad() ? "  " + conditions[i].status : "");
    }
    panel.bars.push_back(std::move(bar));
  }
  panel.notes.emplace_back(
      "box: the middle half of the steps, its mark and the number the median; lines: 5 to 95 %; dots: every step "
      "beyond");
  if (!options.warmup.empty()) panel.notes.push_back("warm-up: " + options.warmup);
  return {"Distribution of iteration times", {std::move(panel)}};
}

Figure throughput_figure(const std::vector<Condition>& conditions, const Options& options) {
  double largest = 0;
  for (const Condition& condition : conditions) largest = std::fmax(largest, finite(condition.tokens_per_second));
  if (largest == 0) throw Error("no condition of the summary has tokens per second (the logs must say tokens)");
  const Unit unit = summary::rate_unit(largest);
  Panel panel;
  panel.x_label = "tokens (" + unit.name + ")";
  for (const Condition& condition : conditions) {
    Bar bar = empty_bar(condition, "no tokens");
    const double rate = finite(condition.tokens_per_second), mean = finite(condition.time_mean);
    if (std::isfinite(rate)) {
      // Tokens of a step are counted, not sampled: the rate's interval is that of the time, inverted.
      const double low = rate * mean / finite(condition.time_high), high = rate * mean / finite(condition.time_low);
      bar.value = rate / unit.factor;
      bar.low = low / unit.factor, bar.high = high / unit.factor;
      bar.label = label(unit, rate, low, high, condition);
    }
    panel.bars.push_back(std::move(bar));
  }
  panel.notes.emplace_back("± and error bars: from the 95 % interval of the mean iteration time");
  if (!options.warmup.empty()) panel.notes.push_back("warm-up: " + options.warmup);
  return {"Throughput", {std::move(panel)}};
}

}  // namespace zs::plot
