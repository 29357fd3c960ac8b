// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "figure/thin.hpp"
#include "plot/curve.hpp"
#include "plot/many.hpp"
#include "stat/columns.hpp"

namespace zs::plot {
namespace {

/// How much is known about conditions with coinciding curves: the larger, the more.
enum class Known { close, curves, bits };

Known known(const summary::Agreement& agreement) {
  if (agreement.curves && agreement.same_steps && agreement.digests && agreement.with_digest == agreement.with_curve)
    return Known::bits;
  return agreement.curves ? Known::curves : Known::close;
}

/// The note about coinciding curves. `series` has the curves of the conditions.
std::string coincidence(const std::vector<Condition>& conditions, const std::vector<Series>& series) {
  const summary::Agreement agreement = summary::agreement(conditions);
  if (known(agreement) == Known::bits)
    return counted(agreement.with_curve, "condition") + ", identical to the last bit (state digest " +
           agreement.digest + ")";
  if (agreement.curves)
    return counted(agreement.with_curve, "condition") + " with the same loss at every " +
           (agreement.same_steps ? "logged step" : "step they share");
  std::map<std::size_t, std::size_t> groups;  // how many there are of each size
  Known least = Known::bits;
  for (std::size_t first = 0; first < series.size(); ++first) {
    if (series[first].layers == 1 || series[first].layer > 0) continue;
    ++groups[series[first].layers];
    std::vector<Condition> members;
    for (std::size_t i = first; i < series.size(); ++i) {
      if (series[i].layers > 1 && series[i].under == first) members.push_back(conditions[i]);
    }
    least = std::min(least, known(summary::agreement(members)));
  }
  std::string text;
  for (const auto& [size, count] : groups) {
    text += (text.empty() ? "" : ", ") + (count > 1 ? counted(count, "group") + " of " : std::string()) +
            counted(size, "curve");
  }
  if (text.empty()) return "";
  return "striped lines: " + text +
         (least == Known::bits     ? " with the same bits"
          : least == Known::curves ? " with the same loss at every common step"
                                   : " too close to tell apart, but not known to be equal");
}

/// How the curves were computed, if that is not obvious.
std::vector<std::string> method(const std::vector<Condition>& conditions, const std::vector<Series>& series,
                                const Options& options) {
  std::vector<std::string> notes;
  std::size_t points = 0, runs = 0, banded = 0, rest = 0;
  for (const Series& one : series) {
    points = std::max(points, one.x.size());
    banded += !one.low.empty(), rest += one.rest;
  }
  for (const Condition& condition : conditions) runs = std::max(runs, condition.members.size());
  if (rest > 0) notes.push_back("in colour: " + highlighted(conditions) + "; in grey: " + counted(rest, "other"));
  if (banded > 0) notes.push_back("band: smallest to largest of " + counted(runs, "run") + "; line: their mean");
  if (const std::size_t count = smoothing(options, points); count > 1)
    notes.push_back("smoothed: the mean of " + counted((count - 1) / 2 * 2 + 1, "logged point") +
                    " around each, fewer at the ends; faint: as logged");
  if (const std::string slow = options.x_axis == "time" ? slow_steps(conditions) : ""; !slow.empty())
    notes.push_back("slow steps count as usual ones on the axis: " + slow);
  if (options.x_axis == "time")
    notes.emplace_back("time: unlogged steps count with the iteration time of the next logged step");
  if (options.x_axis == "tokens" || options.x_axis == "images")
    notes.push_back(options.x_axis + ": unlogged steps count as the next logged step");
  return notes;
}

/// Says how many values of a curve are not finite, and how many a logarithmic axis cannot show; `noun` and `below_noun`
/// are what one of either is called.
void note_not_shown(Panel& panel, const Series& series, const std::string& noun, const std::string& below_noun) {
  std::size_t not_finite = 0, below = 0;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    not_finite += !std::isfinite(series.y[i]);
    below += (panel.log_y && series.y[i] <= 0) || (panel.log_x && series.x[i] <= 0);
  }
  if (not_finite > 0) panel.notes.push_back(series.name + ": " + counted(not_finite, noun) + " not finite");
  if (below > 0)
    panel.notes.push_back(series.name + ": " + counted(below, below_noun) +
                          " not above 0, which a logarithmic axis cannot show");
}

/// Smooths what was made of curves as they were logged.
void smooth(std::vector<Series>& series) {
  for (Series& one : series) {
    const std::size_t count = smoothing({}, one.x.size());
    if (count <= 1) continue;
    one.raw = one.y;
    one.y = smoothed(one.y, count);
  }
}

/// The baseline's loss by step.
std::map<double, double> by_step(const Series& series) {
  std::map<double, double> result;
  for (std::size_t i = 0; i < series.x.size(); ++i) result[series.x[i]] = series.y[i];
  return result;
}

}  // namespace

Figure loss_figure(const std::vector<Condition>& conditions, const Options& options) {
  Panel panel;
  panel.x_label = x_label(options);
  const std::string unit = summary::loss_unit(conditions);
  panel.y_label = unit.empty() ? "loss" : "loss (" + unit + ")";
  panel.log_y = options.log;
  panel.x_from_zero = options.x_axis != "step";
  std::size_t drawn = 0;
  const std::vector<Look> look = looks(conditions);
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Condition& condition = conditions[i];
    std::string partly;
    Series series = loss_curve(condition, look[i], options, &partly);
    if (!partly.empty()) panel.notes.push_back(partly);
    note_not_shown(panel, series, "loss value", "loss value");
    if (series.x.empty()) series.note += series.note.empty() ? "no loss" : ", no loss";
    drawn += !series.x.empty();
    panel.series.push_back(std::move(series));
  }
  if (drawn == 0) throw NoData("no condition of the summary has a loss curve");
  const std::size_t curves = panel.series.size();
  if (curves <= kMostCurves) figure::stripe_coinciding(panel.series, 0.004, options.log);
  const std::string note = coincidence(conditions, panel.series);
  if (curves > kMostCurves) panel.notes.clear();  // notes of single curves
  if (!note.empty()) panel.notes.insert(panel.notes.begin(), note);
  if (!gather_curves(panel, conditions)) {
    for (std::string& one : method(conditions, panel.series, options)) panel.notes.push_back(std::move(one));
  }
  thin(panel);
  return {titled("Training loss", conditions), {std::move(panel)}};
}

Figure curve_figure(const std::vector<Condition>& conditions, const Options& options) {
  if (options.value.empty()) throw UsageError("--value NAME must name a column of the records");
  std::vector<const metric::Run*> runs;
  for (const Condition& condition : conditions) {
    for (const summary::Member& member : condition.members) runs.push_back(member.run);
  }
  stat::require_column(runs, options.value);
  Panel panel;
  const metric::Column* column = nullptr;
  for (const metric::Run* const run : runs) column = column ? column : run->records.find(options.value);
  panel.x_label = x_label(options);
  panel.y_label = options.value + (column->unit.empty() ? "" : " (" + column->unit + ")");
  panel.log_x = options.log_x, panel.log_y = options.log;
  panel.x_from_zero = options.x_axis != "step" && !options.log_x;
  const std::vector<Look> look = looks(conditions);
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    Series series = column_curve(conditions[i], look[i], options);
    note_not_shown(panel, series, "value", "point");
    if (series.x.empty()) series.note += (series.note.empty() ? "no " : ", no ") + options.value;
    panel.series.push_back(std::move(series));
  }
  if (panel.series.size() > kMostCurves) panel.notes.clear();
  if (!gather_curves(panel, conditions)) {
    figure::stripe_coinciding(panel.series, 0.004, options.log);
    for (std::string& one : method(conditions, panel.series, options)) panel.notes.push_back(std::move(one));
  }
  thin(panel);
  return {titled(options.value, conditions), {std::move(panel)}};
}

Figure difference_figure(const std::vector<Condition>& conditions, const Options& options) {
  const Condition& base = summary::baseline(conditions, options.baseline);
  Options by_steps = options;
  by_steps.x_axis = "step";  // differences are taken at the same step, whatever it cost
  by_steps.smooth = options.smooth == 0 ? 1 : options.smooth;
  const std::vector<Look> look = looks(conditions);
  const Series reference = loss_curve(base, {}, by_steps);
  if (reference.x.empty()) throw NoData("the baseline '" + base.name + "' has no loss curve");
  const auto losses = by_step(reference);
  Panel panel;
  panel.x_label = "step";
  panel.y_label = "loss minus that of " + base.name + (base.loss_unit.empty() ? "" : " (" + base.loss_unit + ")");
  std::size_t unchanged = 0, compared = 0;
  for (std::size_t place = 0; place < conditions.size(); ++place) {
    if (&conditions[place] == &base) continue;
    const Series curve = loss_curve(conditions[place], look[place], by_steps);
    Series series = curve;
    for (auto* const values : {&series.x, &series.y, &series.raw, &series.low, &series.high}) values->clear();
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      const auto found = losses.find(curve.x[i]);
      if (found == losses.end()) continue;
      series.x.push_back(curve.x[i]);
      series.y.push_back(curve.y[i] - found->second);
    }
    const std::size_t shared = series.x.size();
    if (shared == 0) series.note += std::string(series.note.empty() ? "" : ", ") + "no step in common";
    unchanged += shared > 0 && summary::agreement({base, conditions[place]}).curves;
    compared += shared > 0;
    panel.series.push_back(std::move(series));
  }
  if (panel.series.empty()) throw Error("all conditions are the baseline '" + base.name + "'");
  figure::stripe_coinciding(panel.series);
  if (unchanged > 0) {
    panel.notes.push_back(counted(unchanged, "condition") + " of " + std::to_string(compared) +
                          " without a difference at any common step");
  }
  if (options.smooth == 0) smooth(panel.series);
  for (std::string& one : method(conditions, panel.series, options)) panel.notes.push_back(std::move(one));
  thin(panel);
  return {titled("Loss difference", conditions), {std::move(panel)}};
}

bool nearly_equal(const std::vector<Condition>& conditions) {
  constexpr double kClose = 0.03;  // share of the range of all losses: a line's width or two
  Range whole;
  double furthest = 0;
  bool shared = false;
  std::map<double, Range> by_step;
  Options plain;
  plain.smooth = 1;
  for (const Condition& condition : conditions) {
    const Series curve = loss_curve(condition, {}, plain);
    for (std::size_t i = 0; i < curve.x.size(); ++i) whole.include(curve.y[i]), by_step[curve.x[i]].include(curve.y[i]);
  }
  if (whole.empty() || conditions.size() < 2) return false;
  for (const auto& [step, range] : by_step) {
    if (range.empty()) continue;
    furthest = std::max(furthest, range.high - range.low);
    shared = shared || range.high > range.low;
  }
  return shared && furthest < kClose * (whole.high - whole.low);
}

}  // namespace zs::plot
