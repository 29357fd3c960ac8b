// SPDX-License-Identifier: Apache-2.0
#include "stat/series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "compare/rows.hpp"
#include "metric/unit.hpp"

namespace zs::stat {
namespace {

using metric::is_absent;

/// A column read as reals; absent in every row if it is missing or text.
class Reals {
 public:
  Reals(const metric::Table& table, std::string_view name) : column_(table.find(name)) {
    if (column_ && column_->type() == metric::Type::text) column_ = nullptr;
  }
  double operator[](std::size_t row) const { return column_ ? column_->real(row) : metric::absent_real(); }
  std::int64_t integer(std::size_t row) const {
    const double value = (*this)[row];
    return is_absent(value) || !(std::fabs(value) < 9e15) ? metric::kAbsentInteger : static_cast<std::int64_t>(value);
  }

 private:
  const metric::Column* column_;
};

double largest_value(const metric::Table& table, const char* name) {
  const Reals values(table, name);
  double found = metric::absent_real();
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!is_absent(values[row]) && (is_absent(found) || values[row] > found)) found = values[row];
  }
  return found;
}

/// The distances of a value that counts what has been since the start, for each step; empty if it is no such count: it
/// grows from each point to the next by about the same for each step. `first`: also the first is one such distance.
std::vector<double> since_start(const std::vector<Point>& points, double Point::*member, bool first) {
  const std::size_t fewest = first ? 5 : 8;  // of fewer points times may grow by chance
  constexpr double kAlike = 3, kGrown = 2;
  std::vector<double> found, sorted;
  const Point* last = nullptr;
  for (const Point& point : points) {
    if (is_absent(point.*member)) continue;
    if (last) {
      const bool numbered = !is_absent(point.step) && !is_absent(last->step);
      const double steps = numbered ? static_cast<double>(point.step - last->step) : 1;
      const double grown = point.*member - last->*member;
      if (!(steps > 0) || !(grown > 0) || !std::isfinite(grown)) return {};
      found.push_back(grown / steps);
    }
    last = &point;
  }
  if (found.size() + 1 < fewest) return {};
  sorted = found;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  const auto alike =
      std::ranges::count_if(found, [&](double one) { return one <= kAlike * *middle && one * kAlike >= *middle; });
  const auto begun = std::ranges::find_if(points, [&](const Point& point) { return !is_absent(point.*member); });
  const double start = *begun.*member, steps = is_absent(begun->step) ? 1 : static_cast<double>(begun->step);
  if (10 * static_cast<std::size_t>(alike) < 9 * found.size() || !(last->*member > kGrown * start)) return {};
  // A count begins at 0: else tokens of a step would grow with the length of sequences.
  if (first && !(start <= *middle * (kAlike * steps + 2))) return {};
  found.insert(found.begin(), first ? *middle : metric::absent_real());
  return found;
}

/// Puts what each step took in place of a count since the start.
void to_steps(std::vector<Point>& points, double Point::*member, bool first) {
  const std::vector<double> each = since_start(points, member, first);
  std::size_t at = 0;
  for (Point& point : points) {
    if (!each.empty() && !is_absent(point.*member)) point.*member = each[at++];
  }
}

}  // namespace

Series series(const metric::Run& run) {
  const metric::Table& table = run.records;
  const Reals lines(table, "line"), losses(table, "loss"), valid(table, "valid_loss"), times(table, "iteration_time"),
      timed(table, "timed"), bytes(table, "comm_bytes"), norms(table, "grad_norm");
  const bool images = table.find(metric::kImages);
  const Reals tokens(table, images ? metric::kImages : "tokens");
  const metric::Column* const loss = table.find("loss");
  const bool named = loss || table.find("valid_loss") || table.find("iteration_time");  // else each row is a point
  Series made{{},    0, {}, largest_value(table, "peak_mem"), largest_value(table, "alloc_mem"), loss ? loss->unit : "",
              images};
  const std::vector<compare::Row> rows = compare::rows(table);
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  for (const compare::Row& row : rows) lowest = std::min(lowest, row.place.rank);
  for (const compare::Row& row : rows) {
    const auto place = [&](const Reals& column) {  // later values of one step join or replace earlier ones
      const auto found =
          std::find_if(row.rows.rbegin(), row.rows.rend(), [&](std::size_t at) { return !is_absent(column[at]); });
      return found == row.rows.rend() ? row.rows.front() : *found;
    };
    const auto value = [&](const Reals& column) { return column[place(column)]; };
    const Point point{row.place.epoch,
                      row.place.step,
                      lines.integer(row.rows.front()),
                      value(losses),
                      value(valid),
                      value(times),
                      value(bytes),
                      value(norms),
                      value(tokens),
                      place(times),
                      timed[place(times)] == 1};
    if (row.place.rank != lowest) {
      if (!made.other_rank && !is_absent(point.loss) && !std::isfinite(point.loss)) made.other_rank = point;
      continue;
    }
    const bool bare = is_absent(point.loss) && is_absent(point.valid_loss) && is_absent(point.time);
    if (bare && named) continue;
    if (row.replaced)
      ++made.replaced;
    else
      made.points.push_back(point);
  }
  const auto earlier = [](const Point& a, const Point& b) {
    return std::tie(a.epoch, a.step) < std::tie(b.epoch, b.step);
  };
  const bool numbered = std::ranges::none_of(made.points, [](const Point& p) { return is_absent(p.step); });
  if (numbered) std::ranges::stable_sort(made.points, earlier);
  to_steps(made.points, &Point::tokens, true);
  to_steps(made.points, &Point::time, false);
  return made;
}

std::pair<std::int64_t, std::int64_t> place_of(const Point& point, std::int64_t number) {
  return is_absent(point.step) ? std::pair(std::int64_t{0}, number) : std::pair(point.epoch, point.step);
}

Sample smoothed(const Sample& losses, double weight) {
  Sample smooth;
  double past = 0, share = 0;  // share: the weights given so far, 1 in the end
  for (const double loss : losses) {
    past = weight * past + (1 - weight) * loss;
    share = weight * share + (1 - weight);
    smooth.push_back(past / share);
  }
  return smooth;
}

double mean_height(const std::vector<std::int64_t>& steps, const Sample& losses) {
  if (losses.empty()) return std::numeric_limits<double>::quiet_NaN();
  double area = 0, width = 0;
  for (std::size_t i = 1; i < losses.size(); ++i) {
    const auto span = static_cast<double>(steps[i] - steps[i - 1]);
    area += span * (losses[i] + losses[i - 1]) / 2;
    width += span;
  }
  return width > 0 ? area / width : losses.front();
}

std::optional<std::int64_t> first_at_most(const std::vector<std::int64_t>& steps, const Sample& losses, double target) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] <= target) return steps[i];
  }
  return {};
}

}  // namespace zs::stat
