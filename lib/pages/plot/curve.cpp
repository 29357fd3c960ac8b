// SPDX-License-Identifier: Apache-2.0
#include "plot/curve.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/number.hpp"
#include "stat/columns.hpp"

namespace zs::plot {
namespace {

/// The increment of the axis per step: tokens or images from the records, time from the curve.
std::map<std::int64_t, double> increments(const Condition& condition, const Options& options) {
  std::map<std::int64_t, double> result;
  const auto add = [&](const metric::Table& table, const char* name) {
    const metric::Column* const steps = table.find("step");
    const metric::Column* const values = table.find(name);
    if (!steps || !values || values->type() == metric::Type::text || steps->type() != metric::Type::integer) return;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      if (!steps->absent(row) && !values->absent(row)) result.try_emplace(steps->integers()[row], values->real(row));
    }
  };
  if (options.x_axis == "time") {
    if (condition.curve) add(*condition.curve, "iteration_time");
  } else {
    for (const summary::Member& member : condition.members) add(member.run->records, options.x_axis.c_str());
  }
  return result;
}

/// The times of all steps, to find a single one that takes longer than a fifth of all others.
struct Pace {
  double usual = 0, total = 0;

  explicit Pace(const std::map<std::int64_t, double>& each) {
    stat::Sample durations;
    for (const auto& [step, seconds] : each) durations.push_back(seconds), total += seconds;
    usual = stat::median(durations);
  }
  bool slow(double seconds) const { return seconds > 20 * usual && seconds > 0.2 * (total - seconds); }
};

/// The values of several runs at one step.
struct Gathered {
  double sum = 0;
  std::size_t count = 0;
  Range range;

  void add(double value) { sum += value, ++count, range.include(value); }
  double mean() const { return sum / static_cast<double>(count); }
};

/// The position of each step in epochs: by the steps of one epoch if the runs have that number, else as logged.
std::vector<double> epochs(const std::vector<double>& steps, const Condition& condition) {
  std::vector<double> result;
  if (const auto each = parse_real(condition.attribute("steps_per_epoch")); each && *each > 0) {
    for (const double step : steps) result.push_back(step / *each);
    return result;
  }
  std::map<double, double> known;
  for (const summary::Member& member : condition.members) {
    const metric::Column* const place = member.run->records.find("step");
    const metric::Column* const epoch = member.run->records.find("epoch");
    if (!place || !epoch || place->type() == metric::Type::text || epoch->type() == metric::Type::text) continue;
    for (std::size_t row = 0; row < member.run->records.rows(); ++row) {
      if (!place->absent(row) && !epoch->absent(row)) known.try_emplace(place->real(row), epoch->real(row));
    }
  }
  if (known.empty()) throw NoData("condition '" + condition.name + "' has no epochs for the axis");
  for (const double step : steps) {
    auto found = known.lower_bound(step);
    if (found == known.end()) --found;
    result.push_back(found->second);
  }
  return result;
}

/// A slow step, such as one that compiles, counts as a usual one: it would squash the axis.
void level(std::map<std::int64_t, double>& each) {
  const Pace pace(each);
  for (auto& [step, seconds] : each) {
    if (pace.slow(seconds)) seconds = pace.usual;
  }
}

/// The place of each step on the axis: every step since the last logged one counts as the logged one.
std::vector<double> axis(const std::vector<double>& steps, const Condition& condition, const Options& options) {
  if (options.x_axis == "step") return steps;
  if (options.x_axis == "epoch") return epochs(steps, condition);
  auto each = increments(condition, options);
  if (options.x_axis == "time") level(each);
  if (each.empty())
    throw NoData("condition '" + condition.name + "' has no " +
                 (options.x_axis == "time" ? "iteration time" : options.x_axis) + " for the axis");
  std::vector<double> result;
  double total = 0, last_step = 0;
  for (const double step : steps) {
    auto found = each.lower_bound(static_cast<std::int64_t>(step));
    if (found == each.end()) --found;
    total += found->second * std::max(0.0, step - last_step);
    last_step = step;
    result.push_back(total);
  }
  return result;
}

/// If only some runs are finite: uses their mean and range.
void complete(const Condition& condition, Series& series, std::string* partly) {
  std::map<double, Gathered> others;
  std::optional<double> from;
  for (std::size_t row = 0; row < series.x.size(); ++row) {
    if (!std::isfinite(series.y[row])) others[series.x[row]];
  }
  if (others.empty() || condition.members.size() < 2) return;
  for (const summary::Member& member : condition.members) {
    for (const stat::Point& point : member.series().points) {
      const auto found = others.find(static_cast<double>(point.step));
      if (found == others.end() || metric::is_absent(point.loss) || !std::isfinite(point.loss)) continue;
      found->second.add(point.loss);
    }
  }
  std::size_t fewest = condition.members.size();
  for (std::size_t row = 0; row < series.x.size(); ++row) {
    const auto found = others.find(series.x[row]);
    if (found == others.end() || found->second.count == 0) continue;
    series.y[row] = found->second.mean();
    series.low[row] = found->second.range.low, series.high[row] = found->second.range.high;
    fewest = std::min(fewest, found->second.count);
    if (!from) from = series.x[row];
  }
  if (from && partly)
    *partly = condition.name + ": not finite in " + counted(condition.members.size() - fewest, "run") + " from step " +
              zs::to_text(*from) + "; the curve is of the others";
}

}  // namespace

std::vector<double> smoothed(const std::vector<double>& values, std::size_t count) {
  if (count <= 1) return values;
  const std::size_t size = values.size();
  std::vector<long double> sums = {0};  // prefix sums; values that are not finite count as 0, and no sum crosses one
  std::vector<std::size_t> before(size), behind(size);  // finite values next to each on either side
  for (std::size_t i = 0; i < size; ++i) {
    sums.push_back(sums.back() + (std::isfinite(values[i]) ? values[i] : 0));
    before[i] = i > 0 && std::isfinite(values[i - 1]) ? before[i - 1] + 1 : 0;
  }
  for (std::size_t i = size; i-- > 0;) behind[i] = i + 1 < size && std::isfinite(values[i + 1]) ? behind[i + 1] + 1 : 0;
  std::vector<double> result;
  for (std::size_t i = 0; i < size; ++i) {
    // The same number on either side, so that the ends do not lean.
    const std::size_t reach = std::min({(count - 1) / 2, before[i], behind[i]});
    const long double sum = sums[i + reach + 1] - sums[i - reach];
    result.push_back(reach > 0 && std::isfinite(values[i])
                         ? static_cast<double>(sum / static_cast<long double>(2 * reach + 1))
                         : values[i]);
  }
  return result;
}

std::string x_label(const Options& options) { return options.x_axis == "time" ? "training time (s)" : options.x_axis; }

std::string titled(const std::string& what, const std::vector<Condition>& conditions) {
  const std::string model = summary::model(conditions);
  return what + (model.empty() ? "" : " of " + model);
}

std::size_t smoothing(const Options& options, std::size_t points) {
  constexpr std::size_t kMany = 200;
  if (options.smooth > 0) return options.smooth;
  return points > kMany ? points / 60 * 2 + 1 : 1;
}

namespace {

Series begun(const Condition& condition, const Look& look) {
  Series series;
  series.name = condition.name;
  series.colour = look.ink, series.rest = look.rest;
  if (condition.bad()) series.note = condition.status;
  return series;
}

/// Puts a curve over steps onto the axis, and smooths it.
void finish(Series& series, const Condition& condition, const Look& look, const Options& options) {
  series.x = axis(series.x, condition, options);
  const std::size_t count = smoothing(options, series.x.size());
  if (count > 1 && !look.rest) series.raw = series.y;
  for (auto* values : {&series.y, &series.low, &series.high}) *values = smoothed(*values, count);
}

}  // namespace

std::string slow_steps(const std::vector<Condition>& conditions) {
  std::string text;
  Options options;
  options.x_axis = "time";
  for (const Condition& condition : conditions) {
    const auto each = increments(condition, options);
    const Pace pace(each);
    for (const auto& [step, seconds] : each) {
      if (pace.slow(seconds))
        text += (text.empty() ? "" : ", ") + condition.name + " at step " + zs::to_text(step) + " (" +
                summary::time_unit(seconds).text(seconds, 3) + ")";
    }
  }
  return text;
}

Series loss_curve(const Condition& condition, const Look& look, const Options& options, std::string* partly) {
  Series series = begun(condition, look);
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
  if (series.x.empty()) return series;
  complete(condition, series, partly);
  if (!band) series.low.clear(), series.high.clear();
  finish(series, condition, look, options);
  return series;
}

Series column_curve(const Condition& condition, const Look& look, const Options& options) {
  Series series = begun(condition, look);
  std::map<std::int64_t, Gathered> steps;
  for (const summary::Member& member : condition.members) {
    for (const stat::ColumnPoint& point : stat::column_points(*member.run, options.value))
      steps[point.step].add(point.value);
  }
  bool band = false;
  for (const auto& [place, step] : steps) {
    series.x.push_back(static_cast<double>(place));
    series.y.push_back(step.mean());
    series.low.push_back(step.range.low), series.high.push_back(step.range.high);
    band = band || step.range.high > step.range.low;
  }
  if (series.x.empty()) return series;
  if (!band) series.low.clear(), series.high.clear();
  finish(series, condition, look, options);
  return series;
}

}  // namespace zs::plot
