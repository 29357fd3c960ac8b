// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "plot/curve.hpp"

namespace zs::plot {
namespace {

/// What is said about curves that lie on one another.
std::string coincidence(const std::vector<Condition>& conditions, const std::vector<Series>& series) {
  const summary::Agreement all = summary::agreement(conditions);
  if (all.curves && all.same_steps && all.digests && all.with_digest == all.with_curve) {
    return counted(all.with_curve, "condition") + ", identical to the last bit (state digest " + all.digest + ")";
  }
  if (all.curves)
    return counted(all.with_curve, "condition") + " with the same loss at every " +
           (all.same_steps ? "logged step" : "step they share");
  std::map<std::size_t, std::size_t> groups;
  for (const Series& one : series) {
    if (one.layers > 1 && one.layer == 0) ++groups[one.layers];
  }
  std::string text;
  for (const auto& [size, count] : groups) {
    text += (text.empty() ? "" : ", ") + (count > 1 ? counted(count, "group") + " of " : std::string()) +
            counted(size, "curve");
  }
  return text.empty() ? "" : "striped lines: " + text + " closer than the eye can see, not shown to be equal";
}

/// How the curves were made, where that is not plain.
std::vector<std::string> method(const Options& options) {
  std::vector<std::string> notes;
  if (options.smooth > 1)
    notes.push_back("smoothed: the mean of " + counted((options.smooth - 1) / 2 * 2 + 1, "logged point") +
                    " around each");
  if (options.x_axis == "time")
    notes.emplace_back("time: the iteration time of each logged step, also for the steps since the one before");
  if (options.x_axis == "tokens")
    notes.emplace_back("tokens: those of each logged step, also for the steps since the one before");
  return notes;
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
  panel.y_label = "loss (nats/token)";
  panel.log_y = options.log;
  std::size_t drawn = 0;
  for (const Condition& condition : conditions) {
    Series series = loss_curve(condition, options);
    std::size_t wild = 0, below = 0;
    for (const double y : series.y) wild += !std::isfinite(y), below += y <= 0;
    if (wild > 0)
      panel.notes.push_back(condition.name + ": " +
                            counted(wild, options.smooth > 1 ? "smoothed point" : "loss value") + " not finite");
    if (options.log && below > 0)
      panel.notes.push_back(condition.name + ": " + counted(below, "loss value") +
                            " not above 0, which a logarithmic axis cannot show");
    if (series.x.empty()) series.note += series.note.empty() ? "no loss" : ", no loss";
    drawn += !series.x.empty();
    panel.series.push_back(std::move(series));
  }
  if (drawn == 0) throw Error("no condition of the summary has a loss curve");
  stripe_coinciding(panel.series, 0.004, options.log);
  const std::string note = coincidence(conditions, panel.series);
  if (!note.empty()) panel.notes.insert(panel.notes.begin(), note);
  for (std::string& one : method(options)) panel.notes.push_back(std::move(one));
  return {"Training loss", {std::move(panel)}};
}

Figure difference_figure(const std::vector<Condition>& conditions, const Options& options) {
  std::vector<std::string> names;
  for (const Condition& condition : conditions) names.push_back(condition.name);
  const auto base = options.baseline.empty() ? names.begin() : std::find(names.begin(), names.end(), options.baseline);
  if (base == names.end())
    throw UsageError("no condition '" + options.baseline + "' to be the baseline" +
                     did_you_mean(options.baseline, names));
  Options by_steps = options;
  by_steps.x_axis = "step";  // differences are taken at the same step, whatever it cost
  const Series reference = loss_curve(conditions[static_cast<std::size_t>(base - names.begin())], by_steps);
  if (reference.x.empty()) throw Error("the baseline '" + *base + "' has no loss curve");
  const auto losses = by_step(reference);
  Panel panel;
  panel.x_label = "step";
  panel.y_label = "loss minus that of " + *base + " (nats/token)";
  std::size_t unchanged = 0, compared = 0;
  for (const Condition& condition : conditions) {
    if (condition.name == *base) continue;
    const Series curve = loss_curve(condition, by_steps);
    Series series = curve;
    series.x.clear(), series.y.clear(), series.low.clear(), series.high.clear();
    std::size_t equal = 0;
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      const auto found = losses.find(curve.x[i]);
      if (found == losses.end()) continue;
      series.x.push_back(curve.x[i]);
      series.y.push_back(curve.y[i] - found->second);
      equal += series.y.back() == 0;
    }
    const std::size_t shared = series.x.size();
    if (shared == 0) series.note += std::string(series.note.empty() ? "" : ", ") + "no step in common";
    unchanged += shared > 0 && equal == shared;
    compared += shared > 0;
    panel.series.push_back(std::move(series));
  }
  if (panel.series.empty()) throw Error("there is no condition beside the baseline '" + *base + "'");
  stripe_coinciding(panel.series);
  if (unchanged > 0) {
    panel.notes.push_back((unchanged == compared ? "no difference at any step they share: "
                                                 : "of which no difference at any step they share: ") +
                          counted(unchanged, "condition"));
  }
  for (std::string& one : method(by_steps)) panel.notes.push_back(std::move(one));
  return {"Loss difference", {std::move(panel)}};
}

}  // namespace zs::plot
