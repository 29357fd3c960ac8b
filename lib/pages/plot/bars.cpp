// SPDX-License-Identifier: Apache-2.0
// The figures of bars: time and its distribution, memory, throughput.
#include <algorithm>
#include <cmath>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "plot/figures.hpp"
#include "plot/many.hpp"
#include "summary/condition.hpp"

namespace zs::plot {
namespace {

constexpr std::size_t kFewPoints = 10;  // fewer are drawn as they are: their quartiles are none

double finite(const std::optional<double>& value) { return value && std::isfinite(*value) ? *value : kNone; }

std::string titled(Condition::Column column, const Unit& unit) { return column.row().titled(unit.name); }

/// The part of a bar's figure that differs from one to the next.
struct Reading {
  double value = kNone, low = kNone, high = kNone, inner = kNone;
};

/// A bar for each condition, labelled with its value, half its interval, and its status if it failed.
template <typename Read>
std::vector<Bar> bars(const std::vector<Condition>& conditions, const Unit& unit, const std::string& missing,
                      Read read) {
  std::vector<Bar> made;
  const std::vector<Look> look = looks(conditions);
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Condition& condition = conditions[i];
    const Reading found = read(condition);
    Bar bar;
    bar.name = condition.name;
    bar.colour = look[i].ink;
    bar.failed = condition.bad();
    bar.value = found.value / unit.factor, bar.inner = found.inner / unit.factor;
    bar.low = found.low / unit.factor, bar.high = found.high / unit.factor;
    if (std::isfinite(found.value)) {
      bar.label =
          unit.measured(found.value, (found.high - found.low) / 2) + (condition.bad() ? "  " + condition.status : "");
    } else {
      bar.label = condition.bad() ? condition.status : missing;
    }
    made.push_back(std::move(bar));
  }
  return made;
}

/// A figure of bars of a fact about the runs: of results of methods, which have no times of steps.
Figure fact_figure(const std::vector<Condition>& conditions, const char* fact, Unit (*unit_of)(double),
                   const std::string& title, const std::string& missing) {
  const auto read = [&](const Condition& condition) { return Reading{summary::mean_fact(condition, {fact})}; };
  double largest = 0;
  for (const Condition& condition : conditions) largest = std::fmax(largest, read(condition).value);
  if (!(largest > 0)) throw NoData(missing);
  const Unit unit = unit_of(largest);
  Panel panel;
  panel.x_label = std::string(attribute::label(fact)) + " (" + unit.name + ")";
  panel.bars = bars(conditions, unit, "none", read);
  gather_bars(panel, conditions, unit);
  return {title, {std::move(panel)}};
}

/// Iteration times of a condition that its statistics are made of, ascending.
stat::Sample times_of(const Condition& condition) {
  stat::Sample seconds;
  for (const summary::Member& member : condition.members) {
    const metric::Table& records = member.run->records;
    const metric::Column *const times = records.find("iteration_time"), *const timed = records.find("timed");
    if (!times || !timed || times->type() == metric::Type::text || timed->type() == metric::Type::text) continue;
    for (std::size_t row = 0; row < records.rows(); ++row) {
      if (timed->real(row) == 1) seconds.push_back(times->real(row));
    }
  }
  std::ranges::sort(seconds);
  return seconds;
}

}  // namespace

Figure time_figure(const std::vector<Condition>& conditions, const Options& options) {
  double largest = 0;
  for (const Condition& condition : conditions) largest = std::fmax(largest, finite(condition["time_mean"]));
  if (largest == 0) throw NoData("no condition of the summary has an iteration time");
  const Unit unit = summary::time_unit(largest);
  Panel panel;
  panel.x_label = titled("time_mean", unit);
  panel.bars = bars(conditions, unit, "no time", [&](const Condition& condition) {
    const double mean = finite(condition["time_mean"]), spread = finite(condition["time_std"]);
    if (options.deviation) return Reading{mean, mean - spread, mean + spread};
    return Reading{mean, finite(condition["time_low"]), finite(condition["time_high"])};
  });
  const bool gathered = gather_bars(panel, conditions, unit);
  const auto repeated = static_cast<std::size_t>(
      std::ranges::count_if(conditions, [](const Condition& condition) { return condition["runs"].value_or(1) > 1; }));
  const char* const over = repeated == 0                   ? "steps"
                           : repeated == conditions.size() ? "runs"
                                                           : "runs, or steps of a single one";
  if (!gathered && std::ranges::any_of(panel.bars, [](const Bar& bar) { return std::isfinite(bar.high - bar.low); }))
    panel.notes.push_back(options.deviation ? std::string("± and error bars: standard deviation of the iteration times")
                                            : std::string("± and error bars: 95 % interval of the mean over ") + over);
  if (!options.warmup.empty()) panel.notes.push_back("warm-up: " + options.warmup);
  return {"Iteration time", {std::move(panel)}};
}

Figure duration_figure(const std::vector<Condition>& conditions, const Options&) {
  double largest = 0;
  for (const Condition& condition : conditions) largest = std::fmax(largest, finite(condition["time_total"]));
  if (largest == 0)
    return fact_figure(conditions, "epoch_time", summary::time_unit, "Time of an epoch",
                       "no condition of the summary has an iteration time");
  const Unit unit = summary::time_unit(largest);
  Panel panel;
  panel.x_label = titled("time_total", unit);
  panel.bars = bars(conditions, unit, "no time",
                    [](const Condition& condition) { return Reading{finite(condition["time_total"])}; });
  gather_bars(panel, conditions, unit);
  panel.notes.emplace_back("unlogged steps count with the iteration time of the next logged step");
  return {"Time of all steps", {std::move(panel)}};
}

Figure memory_figure(const std::vector<Condition>& conditions, const Options&) {
  double largest = 0;
  bool inner = false;
  for (const Condition& condition : conditions) {
    largest = std::max(largest, condition["peak_mem"].value_or(0));
    inner = inner || (condition["peak_mem"] && condition["alloc_mem"]);
  }
  if (largest == 0) throw NoData("no condition of the summary has a peak memory");
  const Unit unit = summary::bytes_unit(largest);
  Panel panel;
  panel.x_label = titled("peak_mem", unit);
  panel.bars = bars(conditions, unit, "no memory", [&](const Condition& condition) {
    return Reading{finite(condition["peak_mem"]), kNone, kNone, finite(condition["alloc_mem"])};
  });
  if (!gather_bars(panel, conditions, unit) && inner)
    panel.notes.emplace_back("mark inside a bar: memory allocated (alloc_mem)");
  return {"Peak memory", {std::move(panel)}};
}

Figure distribution_figure(const std::vector<Condition>& conditions, const Options& options) {
  std::vector<stat::Sample> samples;
  double largest = 0;
  for (const Condition& condition : conditions) {
    samples.push_back(times_of(condition));
    if (!samples.back().empty()) largest = std::max(largest, samples.back().back());
  }
  if (largest == 0) throw NoData("no run of the summary has iteration times");
  const Unit unit = summary::time_unit(largest);
  Panel panel;
  panel.style = Panel::Style::boxes;
  panel.x_label = "iteration time (" + unit.name + ")";
  bool boxes = false, dots = false;
  const std::vector<Look> look = looks(conditions);
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    Bar bar;
    bar.name = conditions[i].name, bar.colour = look[i].ink, bar.failed = conditions[i].bad();
    const stat::Sample& times = samples[i];
    const bool few = times.size() < kFewPoints;
    if (!times.empty()) {
      const auto at = [&](double share) { return stat::quantile(times, share) / unit.factor; };
      bar.from = bar.value = bar.inner = at(0.5);
      if (!few) bar.from = at(0.25), bar.value = at(0.75), bar.low = at(0.05), bar.high = at(0.95);
      for (const double time : times) {
        const double one = time / unit.factor;
        if (few || !(one >= bar.low && one <= bar.high)) bar.dots.push_back(one);
      }
      (few ? dots : boxes) = true;
    }
    const std::string median = times.empty() ? "" : unit.text(stat::quantile(times, 0.5));
    bar.label = !bar.failed ? (median.empty() ? "no time" : median)
                            : (median.empty() ? "" : median + "  ") + conditions[i].status;
    panel.bars.push_back(std::move(bar));
  }
  if (gather_bars(panel, conditions, unit)) boxes = dots = false;
  if (boxes)
    panel.notes.emplace_back(
        "box: the middle half of the steps; mark and number: the median; lines: 5 to 95 %; dots: all other steps");
  if (dots)
    panel.notes.push_back("fewer than " + std::to_string(kFewPoints) + " steps: every one as a dot, and the median");
  if (!options.warmup.empty()) panel.notes.push_back("warm-up: " + options.warmup);
  return {"Distribution of iteration times", {std::move(panel)}};
}

Figure throughput_figure(const std::vector<Condition>& conditions, const Options& options) {
  const Condition::Column speed = summary::speed(conditions);
  const std::string noun(speed.row().label);
  double largest = 0;
  for (const Condition& condition : conditions) largest = std::fmax(largest, finite(condition[speed]));
  if (largest == 0)
    return fact_figure(conditions, "samples_per_second", summary::rate_unit, "Throughput",
                       "no condition of the summary has tokens per second (the logs must say tokens)");
  const Unit unit = summary::rate_unit(largest);
  Panel panel;
  panel.x_label = titled(speed, unit);
  panel.bars = bars(conditions, unit, "no " + noun, [&](const Condition& condition) {
    // The content of a step is counted, not sampled: the rate's interval is the inverted interval of the time.
    const double rate = finite(condition[speed]), mean = finite(condition["time_mean"]);
    return Reading{rate, rate * mean / finite(condition["time_high"]), rate * mean / finite(condition["time_low"])};
  });
  if (!gather_bars(panel, conditions, unit))
    panel.notes.emplace_back("± and error bars: from the 95 % interval of the mean iteration time");
  if (!options.warmup.empty()) panel.notes.push_back("warm-up: " + options.warmup);
  return {"Throughput", {std::move(panel)}};
}

}  // namespace zs::plot
