// SPDX-License-Identifier: Apache-2.0
#include "stat/duration.hpp"

#include <algorithm>
#include <cmath>

namespace zs::stat {

double time_of_all_steps(const Series& series) {
  double total = 0;
  std::int64_t covered = -1;  // the step up to which steps have their time
  const std::vector<Point>& points = series.points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (metric::is_absent(points[i].time) || metric::is_absent(points[i].step)) continue;
    const std::int64_t step = points[i].step;
    std::int64_t steps = step - covered;
    if (covered < 0 || step <= covered) {  // the first, of the log or of an epoch that restarts the numbers of steps
      const std::int64_t next = i + 1 < points.size() ? points[i + 1].step : 0;
      steps = std::max<std::int64_t>(1, next > step ? std::min(step, next - step) : step);
    }
    total += points[i].time * static_cast<double>(steps);
    covered = step;
  }
  return covered >= 0 && std::isfinite(total) ? total : metric::absent_real();
}

}  // namespace zs::stat
