// SPDX-License-Identifier: Apache-2.0
#include "stat/steps.hpp"

#include <doctest/doctest.h>

namespace zs::stat {
namespace {

/// Seconds of all steps of a run that logged these steps and times.
double of(const std::vector<std::int64_t>& steps, const std::vector<double>& times) {
  Series series{};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Point point{};
    point.step = steps[i], point.time = times[i];
    series.points.push_back(point);
  }
  return time_of_all_steps(series);
}

}  // namespace

TEST_CASE("duration: the time of all steps, of logs that have each step, every tenth, or part of a training") {
  CHECK(of({1, 2, 3}, {1, 2, 3}) == 6);
  CHECK(of({10, 20, 30}, {0.5, 0.5, 1}) == 20);
  CHECK(of({1, 10, 20}, {1, 2, 3}) == 1 + 9 * 2 + 10 * 3);
  CHECK(of({110, 120}, {1, 1}) == 20);              // it goes on where another log ended
  CHECK(of({10, 20, 10, 20}, {1, 1, 2, 2}) == 60);  // a second epoch
  CHECK(of({0, 1}, {1, 1}) == 2);
  CHECK(of({1, 2, 3}, {1, metric::absent_real(), 3}) == 7);
  CHECK(metric::is_absent(of({1}, {metric::absent_real()})));
  CHECK(metric::is_absent(of({}, {})));
}

}  // namespace zs::stat
