// SPDX-License-Identifier: Apache-2.0
#include "stat/steps.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/number.hpp"

namespace zs::stat {
namespace {

using metric::is_absent;
using metric::kAbsentInteger;

/// An attribute that is a number of steps: above 0, and small enough to be multiplied.
std::optional<std::int64_t> whole_number(const metric::Run& run, const char* key) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const auto value = parse_int(run.attribute(key));
  return value && *value > 0 && *value <= kMost ? value : std::nullopt;
}

/// Distances between neighbours. None where an epoch restarts the numbers of steps.
std::vector<std::int64_t> distances(const Series& series) {
  std::vector<std::int64_t> found;
  const Point* last = nullptr;
  for (const Point& point : series.points) {
    if (is_absent(point.step)) continue;
    if (last && point.step > last->step) found.push_back(point.step - last->step);
    last = &point;
  }
  return found;
}

/// The distance that most have; of two as common the smaller.
std::int64_t usual(const std::vector<std::int64_t>& distances) {
  std::map<std::int64_t, std::size_t> counts;
  for (const std::int64_t distance : distances) ++counts[distance];
  const auto most = std::ranges::max_element(counts, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() || 2 * most->second < distances.size() ? kAbsentInteger : most->first;
}

}  // namespace

bool counts_micro_steps(const metric::Run& run, const Series& series) {
  const auto interval = whole_number(run, "log_interval"), micro = whole_number(run, "gradient_accumulation_steps");
  if (!interval || !micro || *micro == 1 || series.points.empty()) return false;
  return std::ranges::all_of(series.points, [&](const Point& point) {
    return !is_absent(point.step) && point.step % (*interval * *micro) == 0;
  });
}

std::optional<std::int64_t> expected_steps(const metric::Run& run, const Series& series) {
  if (!run.attribute("expected_steps").empty()) return whole_number(run, "expected_steps");
  for (const char* const key : {"bench_step", "max_steps"}) {
    const auto steps = whole_number(run, key);
    if (steps)
      return *steps * (counts_micro_steps(run, series) ? *whole_number(run, "gradient_accumulation_steps") : 1);
  }
  // Names of other trainers for the length of a training.
  for (const char* const key :
       {"steps", "num_steps", "total_steps", "train_steps", "num_train_steps", "max_train_steps", "training_steps",
        "max_iters", "train_iters", "num_iters", "total_iters", "iterations", "num_iterations", "train_iterations"}) {
    if (const auto steps = whole_number(run, key)) return steps;
  }
  return {};
}

std::int64_t log_interval(const metric::Run& run, const Series& series) {
  std::vector<std::int64_t> apart = distances(series);
  const std::size_t size = apart.size();
  const std::int64_t first = size > 0 ? apart.front() : 0;
  if (size > 1 && (series.points.front().step == 0 || series.points.front().step == 1)) apart.erase(apart.begin());
  if (apart.size() > 1 && apart.back() < apart[apart.size() - 2]) apart.pop_back();
  if (const auto said = whole_number(run, "log_interval")) {
    const std::int64_t most =
        *said * (counts_micro_steps(run, series) ? *whole_number(run, "gradient_accumulation_steps") : 1);
    const std::int64_t found = size > 3 ? usual(apart) : kAbsentInteger;
    return is_absent(found) ? most : std::min(most, found);  // a metrics file has every step, whatever the log has
  }
  if (size == 0) return kAbsentInteger;
  if (size <= 3 && first == 1) return 1;
  return usual(apart);
}

MissingSteps missing_steps(const metric::Run& run, const Series& series) {
  MissingSteps found;
  const std::int64_t interval = log_interval(run, series);
  if (is_absent(interval)) return found;
  const Point* last = nullptr;
  for (const Point& point : series.points) {
    if (is_absent(point.step)) continue;
    // Without an earlier point, the run began after the step from which it was resumed.
    const std::int64_t before = last ? last->step : parse_int(run.attribute("resumed_after_step")).value_or(0);
    if (point.step > before && point.step - before > interval) {
      found.count += (point.step - before - 1) / interval;
      if (is_absent(found.first)) {
        const std::int64_t next = (before / interval + 1) * interval;  // most log multiples of their interval
        found.first = next < point.step ? next : before + interval;
        found.after = last;
      }
    }
    last = &point;
  }
  return found;
}

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
