// SPDX-License-Identifier: Apache-2.0
#include "stat/curve.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "stat/loss.hpp"
#include "stat/row.hpp"
#include "stat/sample.hpp"

namespace zs::stat {
namespace {

using metric::is_absent;

struct Step {
  Sample losses, valid_losses, times;
  std::int64_t runs = 0;
};

void collect(Sample& into, double value) {
  if (!is_absent(value)) into.push_back(value);
}

double mean_or_absent(const Sample& values) { return values.empty() ? metric::absent_real() : mean(values); }

/// The minimum (or maximum) of values; nan if any is nan.
double extreme(const Sample& values, bool largest) {
  if (values.empty()) return metric::absent_real();
  double found = values.front();
  for (const double value : values) {
    if (std::isnan(value)) return value;
    found = largest ? std::max(found, value) : std::min(found, value);
  }
  return found;
}

}  // namespace

metric::Table curve(const Condition& condition) {
  std::map<std::pair<std::int64_t, std::int64_t>, Step> steps;
  for (const Member& member : condition.members) {
    std::int64_t count = 0;
    for (const Point& point : member.series.points) {
      ++count;
      const bool numbered = is_absent(point.step);
      Step& step = steps[{numbered ? 0 : point.epoch, numbered ? count : point.step}];
      collect(step.losses, point.loss);
      collect(step.valid_losses, point.valid_loss);
      collect(step.times, point.time);
      ++step.runs;
    }
  }
  using metric::Type;
  metric::Table table;
  table.columns = {{"step", "", Type::integer},         {"loss", kLossUnit, Type::real},
                   {"loss_min", kLossUnit, Type::real}, {"loss_max", kLossUnit, Type::real},
                   {"iteration_time", "s", Type::real}, {"valid_loss", kLossUnit, Type::real},
                   {"runs", "", Type::integer},         {"loss_smooth", kLossUnit, Type::real}};
  for (const auto& [place, step] : steps) {
    table.columns[0].integers().push_back(place.second);
    table.columns[1].reals().push_back(mean_or_absent(step.losses));
    table.columns[2].reals().push_back(extreme(step.losses, false));
    table.columns[3].reals().push_back(extreme(step.losses, true));
    table.columns[4].reals().push_back(mean_or_absent(step.times));
    table.columns[5].reals().push_back(mean_or_absent(step.valid_losses));
    table.columns[6].integers().push_back(step.runs);
  }
  Sample losses;
  for (const double loss : table.columns[1].reals()) collect(losses, loss);
  const Sample smooth = smoothed(losses);
  auto next = smooth.begin();
  for (const double loss : table.columns[1].reals()) {
    table.columns[7].reals().push_back(is_absent(loss) ? metric::absent_real() : *next++);
  }
  return table;
}

}  // namespace zs::stat
