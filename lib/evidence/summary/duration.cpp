// SPDX-License-Identifier: Apache-2.0
#include "summary/duration.hpp"

#include <algorithm>
#include <cmath>

namespace zs::summary {

std::optional<double> all_steps(const Member& member) {
  double total = 0;
  std::int64_t covered = -1;  // the step up to which steps have their time
  const std::vector<stat::Point>& points = member.series.points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (metric::is_absent(points[i].time) || metric::is_absent(points[i].step)) continue;
    const std::int64_t step = points[i].step;
    std::int64_t steps = step - covered;
    if (covered < 0 || step <= covered) {  // the first, of the log or of an epoch whose steps are numbered anew
      const std::int64_t next = i + 1 < points.size() ? points[i + 1].step : 0;
      steps = std::max<std::int64_t>(1, next > step ? std::min(step, next - step) : step);
    }
    total += points[i].time * static_cast<double>(steps);
    covered = step;
  }
  return covered >= 0 && std::isfinite(total) ? std::optional(total) : std::nullopt;
}

std::optional<double> all_steps(const Condition& condition) {
  stat::Sample all;
  for (const Member& member : condition.members) {
    if (const auto seconds = all_steps(member)) all.push_back(*seconds);
  }
  return all.empty() ? std::nullopt : std::optional(stat::mean(all));
}

}  // namespace zs::summary
