// SPDX-License-Identifier: Apache-2.0
#include "stat/series.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zs::stat {
namespace {

using metric::is_absent;

/// A column read as reals, or as absent in every row where it is missing or text.
class Reals {
 public:
  Reals(const metric::Table& table, const char* name) : column_(table.find(name)) {
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

double largest(const metric::Table& table, const char* name) {
  const Reals values(table, name);
  double found = metric::absent_real();
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!is_absent(values[row]) && (is_absent(found) || values[row] > found)) found = values[row];
  }
  return found;
}

std::int64_t lowest_rank(const Reals& ranks, std::size_t rows) {
  std::int64_t lowest = metric::kAbsentInteger;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t rank = ranks.integer(row);
    if (!is_absent(rank) && (is_absent(lowest) || rank < lowest)) lowest = rank;
  }
  return lowest;
}

/// Later values of one step join or replace earlier ones.
void update(double& into, double from) {
  if (!is_absent(from)) into = from;
}

std::pair<std::int64_t, std::int64_t> place(const Point& point) { return {point.epoch, point.step}; }

void add(Series& series, const Point& point) {
  auto& points = series.points;
  if (!is_absent(point.step)) {
    while (!points.empty() && !is_absent(points.back().step) && place(points.back()) > place(point)) {
      points.pop_back();
      ++series.replaced;
    }
    if (!points.empty() && place(points.back()) == place(point)) {
      Point& same = points.back();
      if (!is_absent(point.loss) && !is_absent(same.loss)) ++series.replaced;
      for (const auto member :
           {&Point::loss, &Point::valid_loss, &Point::time, &Point::tokens, &Point::comm_bytes, &Point::grad_norm}) {
        update(same.*member, point.*member);
      }
      return;
    }
  }
  points.push_back(point);
}

}  // namespace

Series series(const metric::Run& run) {
  const metric::Table& table = run.records;
  const Reals epochs(table, "epoch"), steps(table, "step"), lines(table, "line"), ranks(table, "rank");
  const Reals losses(table, "loss"), valid(table, "valid_loss"), times(table, "iteration_time"),
      tokens(table, "tokens");
  const Reals bytes(table, "comm_bytes"), norms(table, "grad_norm");
  const std::int64_t rank = lowest_rank(ranks, table.rows());
  Series made{{}, 0, {}, largest(table, "peak_mem"), largest(table, "alloc_mem")};
  std::int64_t epoch = metric::kAbsentInteger;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::int64_t here = ranks.integer(row);
    if (!is_absent(epochs.integer(row))) epoch = epochs.integer(row);
    const Point point{epoch,      steps.integer(row), lines.integer(row), losses[row], valid[row],
                      times[row], tokens[row],        bytes[row],         norms[row]};
    if (!is_absent(here) && here != rank) {
      if (!made.other_rank && !is_absent(point.loss) && !std::isfinite(point.loss)) made.other_rank = point;
      continue;
    }
    if (is_absent(point.loss) && is_absent(point.valid_loss) && is_absent(point.time)) continue;
    add(made, point);
  }
  return made;
}

}  // namespace zs::stat
