// SPDX-License-Identifier: Apache-2.0
// The figures that put results against what differs: ranks and revisions.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "plot/curve.hpp"
#include "summary/difference.hpp"
#include "summary/ratio.hpp"

namespace zs::plot {
namespace {

struct Scaled {
  double ranks, rate;
};
using Scaling = std::vector<std::pair<std::string, std::vector<Scaled>>>;  // by name, each by ranks

/// A curve for each set of conditions that differ in their ranks alone; counts the conditions `without` a point.
Scaling scaling_of(const std::vector<Condition>& conditions, const Condition::Column& speed, std::size_t& without) {
  // Attributes that a scaling study varies together with the ranks need no separate curve.
  std::vector<std::string> keys = summary::parameters(conditions);
  std::erase_if(keys, [](const std::string& key) {
    const attribute::Attribute* const row = attribute::find(key);
    return row && (row->scaled || row->found);
  });
  Scaling curves;
  for (const Condition& condition : conditions) {
    const auto ranks = parse_real(condition.attribute("world_size"));
    const auto rate = condition[speed];
    if (!ranks || !rate || !std::isfinite(*rate) || condition.bad()) {
      ++without;
      continue;
    }
    std::string name;
    for (const std::string& key : keys) {
      const std::string value = condition.attribute(key);
      if (!value.empty()) name += (name.empty() ? "" : ", ") + key + " " + value;
    }
    if (name.empty()) name = "measured";
    const auto found = std::ranges::find(curves, name, &Scaling::value_type::first);
    (found != curves.end() ? found : curves.insert(curves.end(), {name, {}}))->second.push_back({*ranks, *rate});
  }
  for (auto& [name, points] : curves) std::ranges::stable_sort(points, {}, &Scaled::ranks);
  return curves;
}

}  // namespace

Figure scaling_figure(const std::vector<Condition>& conditions, const Options&) {
  const Condition::Column speed = summary::speed(conditions);
  std::size_t without = 0;
  const Scaling curves = scaling_of(conditions, speed, without);
  std::set<double> counts;
  for (const auto& [name, points] : curves) {
    for (const Scaled& point : points) counts.insert(point.ranks);
  }
  if (counts.size() < 2)
    throw NoData(
        "scaling needs conditions with tokens per second at two numbers of ranks (attribute world_size) or more");
  Panel rate, share;
  rate.title = "Throughput", share.title = "Efficiency";
  rate.x_label = share.x_label = "ranks";
  rate.log_x = share.log_x = true;
  rate.x_ticks.assign(counts.begin(), counts.end());
  share.x_ticks = rate.x_ticks;
  rate.log_y = true;
  share.from_zero = true;
  rate.y_label = speed.row().titled("1/s");
  share.y_label = "throughput of a rank, of that at the fewest ranks (%)";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto& points = curves[i].second;
    Series rates, shares;
    rates.name = shares.name = curves[i].first;
    rates.colour = shares.colour = Ink(i);
    const double each = points.front().rate / points.front().ranks;
    for (const Scaled& point : points) {
      rates.x.push_back(point.ranks), rates.y.push_back(point.rate);
      shares.x.push_back(point.ranks), shares.y.push_back(100 * point.rate / point.ranks / each);
    }
    rate.series.push_back(std::move(rates));
    share.series.push_back(std::move(shares));
  }
  Series ideal;
  ideal.name = "ideal: 100 %";
  ideal.colour = Ink::Role::note;
  ideal.x = {*counts.begin(), *counts.rbegin()};
  ideal.y = {100, 100};
  share.series.push_back(std::move(ideal));
  if (without > 0)
    share.notes.push_back(counted(without, "condition") + " left out: failed, or without ranks or " +
                          std::string(speed.row().label));
  return {"Scaling", {std::move(rate), std::move(share)}, 2};
}

Figure revision_figure(const std::vector<Condition>& conditions, const Options& options) {
  const Condition& baseline = summary::baseline(conditions, options.baseline);
  Panel forest;
  forest.title = "Ratio to " + baseline.name;
  forest.x_label = "ratio: above 1 is slower, or more memory";
  forest.style = Panel::Style::points;
  forest.reference = 1, forest.shade_low = 1 - options.gate, forest.shade_high = 1 + options.gate;
  const std::vector<Look> look = looks(conditions);
  bool cut = false;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Condition& other = conditions[i];
    if (&other == &baseline || other.bad() || baseline.bad()) continue;
    const summary::Ratios ratios = summary::ratios(baseline, other);
    for (const auto& [what, ratio] : {std::pair{"time", &ratios.time}, {"memory", &ratios.memory}}) {
      if (!std::isfinite(ratio->value)) continue;
      Bar bar;
      bar.name = other.name + " " + what;
      bar.colour = look[i].ink;
      // An interval of two runs may reach from 0 to 40: the axis is for the ratios.
      constexpr double kFurthest = 2;
      bar.value = ratio->value;
      bar.low = std::isfinite(ratio->low) ? std::max(ratio->low, ratio->value / kFurthest) : kNone;
      bar.high = std::isfinite(ratio->high) ? std::min(ratio->high, ratio->value * kFurthest) : kNone;
      cut = cut || bar.low > ratio->low || bar.high < ratio->high;
      bar.label = to_rounded_text(ratio->value, 4);
      if (ratio->low < ratio->high)
        bar.label += " (" + to_rounded_text(ratio->low, 4) + " to " + to_rounded_text(ratio->high, 4) + ")";
      forest.bars.push_back(std::move(bar));
    }
  }
  forest.notes.push_back("line: 95 % interval, for time and memory together; shaded: within " +
                         to_rounded_text(100 * options.gate, 2) + " % of " + baseline.name);
  if (cut) forest.notes.emplace_back("lines end at half and twice the ratio; the numbers say how far they reach");
  Figure figure{titled("Comparison of revisions", conditions), {}, 1};
  if (!forest.bars.empty()) figure.panels.push_back(std::move(forest));
  if (std::ranges::any_of(conditions, [](const Condition& one) { return one.curve != nullptr; })) {
    figure.panels.push_back(loss_figure(conditions, options).panels.front());
    figure.panels.back().title = "Training loss";
  }
  if (nearly_equal(conditions)) {
    figure.panels.push_back(difference_figure(conditions, options).panels.front());
    figure.panels.back().title = "Loss difference";
  }
  if (figure.panels.empty()) throw NoData("the revisions have neither times, nor memory, nor losses");
  return figure;
}

}  // namespace zs::plot
