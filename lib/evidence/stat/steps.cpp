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

std::vector<std::int64_t> training_steps(const Series& series) {
  const bool losses = std::ranges::any_of(series.points, [](const Point& point) { return !is_absent(point.loss); });
  std::vector<std::int64_t> steps;
  for (const Point& point : series.points) {
    if (!is_absent(point.step) && !(losses && is_absent(point.loss))) steps.push_back(point.step);
  }
  return steps;
}

std::int64_t next_step(const metric::Run& run, const Series& series) {
  const std::vector<std::int64_t> steps = training_steps(series);
  if (steps.size() < 2) return kAbsentInteger;
  std::int64_t widest = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) widest = std::max(widest, steps[i] - steps[i - 1]);
  // The last interval is the last distance that follows itself.
  std::int64_t interval = log_interval(run, series), from = steps.back();
  if (!is_absent(interval)) interval = std::min(interval, widest);
  for (std::size_t i = steps.size() - 1; i > 1; --i) {
    if (steps[i] <= steps[i - 1] || steps[i] - steps[i - 1] != steps[i - 1] - steps[i - 2]) continue;
    interval = steps[i] - steps[i - 1], from = steps[i];
    break;
  }
  if (is_absent(interval) || interval <= 0) return kAbsentInteger;
  const std::int64_t last = *std::ranges::max_element(steps);
  return from + ((last - from) / interval + 1) * interval;
}

MissingSteps missing_steps(const metric::Run& run, const Series& series) {
  MissingSteps found;
  const std::int64_t interval = log_interval(run, series);
  if (is_absent(interval)) return found;
  struct Gap {
    std::int64_t before, distance;
    const Point* after;
  };
  std::vector<Gap> gaps;
  const Point* last = nullptr;
  for (const Point& point : series.points) {
    if (is_absent(point.step)) continue;
    // Without an earlier point, the run began after the step from which it was resumed.
    const std::int64_t before = last ? last->step : parse_int(run.attribute("resumed_after_step")).value_or(0);
    gaps.push_back({before, point.step - before, last});
    last = &point;
  }
  const auto size = static_cast<std::ptrdiff_t>(gaps.size());
  const auto distance_at = [&](std::ptrdiff_t at) { return gaps[static_cast<std::size_t>(at)].distance; };
  const bool said = whole_number(run, "log_interval").has_value();
  for (std::ptrdiff_t at = 0; at < size; ++at) {
    const auto& [before, distance, after] = gaps[static_cast<std::size_t>(at)];
    if (distance <= interval) continue;
    // It is a gap if the points before and after it are denser. Three as wide in a row are an interval.
    std::int64_t usual = interval, alike = 1, first = at - 1, next = at + 1;
    for (; alike < 3 && first >= 0 && distance_at(first) == distance; --first) ++alike;
    for (; alike < 3 && next < size && distance_at(next) == distance; ++next) ++alike;
    bool sparse = alike == 3;
    if (first > 0) usual = std::max(usual, distance_at(first));  // that of the first point is from the start
    if (next < size) usual = std::max(usual, distance_at(next));
    sparse = sparse || distance <= usual || (usual > interval && distance < 2 * usual);
    // Of one line lost at the end the distance is twice the usual one; a wider one may be a new interval.
    sparse = sparse || (next == size && at > 0 && !said && (alike > 1 || distance > 2 * usual));
    if (sparse) continue;
    found.count += (distance - 1) / usual;
    if (is_absent(found.first)) {
      const std::int64_t multiple = (before / usual + 1) * usual;  // most log multiples of their interval
      found.first = multiple < before + distance ? multiple : before + usual;
      found.after = after;
    }
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
