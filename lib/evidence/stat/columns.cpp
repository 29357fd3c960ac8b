// SPDX-License-Identifier: Apache-2.0
#include "stat/columns.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "compare/rows.hpp"
#include "stat/work.hpp"

namespace zs::stat {
namespace {

using metric::absent_real;
using metric::is_absent;

std::string shown(double value) { return to_shown_text(value, 6); }

/// "2.5 ± 0.1": with half the width of the interval, if there is one.
std::string mean_text(const metric::Table& summary, const std::string& name, std::size_t row) {
  const metric::Column* const mean = summary.find(name + ".mean");
  const metric::Column *const low = summary.find(name + ".low"), *const high = summary.find(name + ".high");
  if (!mean || mean->absent(row)) return "-";
  std::string text = shown(mean->real(row));
  if (low && high && !low->absent(row) && !high->absent(row))
    text += " ± " + to_rounded_text((high->real(row) - low->real(row)) / 2, 2);
  return text;
}

}  // namespace

std::vector<ColumnPoint> column_points(const metric::Run& run, const std::string& column) {
  std::vector<ColumnPoint> points;
  const metric::Column* const values = run.records.find(column);
  if (!values) return points;
  if (values->type() == metric::Type::text)
    throw Error("column '" + column + "' of run '" + run.name + "' is text: there is nothing to compute of it");
  const std::vector<compare::Row> rows = compare::rows(run.records);
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max(), count = 0;
  for (const compare::Row& row : rows) lowest = std::min(lowest, row.place.rank);
  bool numbered = true;
  for (const compare::Row& row : rows) {
    const auto cell = compare::cell(*values, row);
    if (!cell || row.replaced || row.place.rank != lowest) continue;
    ++count;
    numbered = numbered && !is_absent(row.place.step);
    points.push_back({row.place.epoch, is_absent(row.place.step) ? count : row.place.step, values->real(*cell)});
  }
  if (numbered) {
    std::ranges::stable_sort(points, [](const ColumnPoint& a, const ColumnPoint& b) {
      return std::tie(a.epoch, a.step) < std::tie(b.epoch, b.step);
    });
  }
  return points;
}

void require_column(const std::vector<const metric::Run*>& runs, const std::string& column) {
  std::vector<std::string> names;
  for (const metric::Run* const run : runs) {
    for (const metric::Column& one : run->records.columns) {
      if (one.name == column) return;
      if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
    }
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? ": they have " : ", ") + name;
  const std::string near = did_you_mean(column, names);
  throw UsageError("no run has a column '" + column + "'" + (near.empty() ? list : near));
}

void write_columns(RowWriter& row, const Condition& condition, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    Sample firsts, lasts, means, points;
    std::string unit;
    for (const Member& member : condition.members) {
      Sample values;
      for (const ColumnPoint& point : column_points(*member.run, name)) values.push_back(point.value);
      if (values.empty()) continue;
      unit = member.run->records.find(name)->unit;
      firsts.push_back(values.front());
      lasts.push_back(values.back());
      means.push_back(mean(values));
      points.insert(points.end(), values.begin(), values.end());
    }
    // Points of one run are not independent repetitions: with several runs their spread counts.
    const Interval interval = mean_interval(means.size() > 1 ? means : points);
    row.real(name + ".first", mean_of(firsts), unit);
    row.real(name + ".last", mean_of(lasts), unit);
    row.real(name + ".min", or_absent(points, least(points)), unit);
    row.real(name + ".max", or_absent(points, greatest(points)), unit);
    row.real(name + ".mean", mean_of(means), unit);
    row.real(name + ".low", finite_or_absent(interval.low), unit);
    row.real(name + ".high", finite_or_absent(interval.high), unit);
  }
}

Sheet columns_for_people(const metric::Table& summary, const std::vector<std::string>& names) {
  Sheet cells{{"condition", "column", "first", "last", "min", "max", "mean (95 %)"}, {}};
  for (const std::string& name : names) {
    for (std::size_t row = 0; row < summary.rows(); ++row) {
      const auto cell = [&](const char* what) {
        const metric::Column* const column = summary.find(name + what);
        return !column || column->absent(row) ? std::string("-") : shown(column->real(row));
      };
      cells.rows.push_back({summary.find("condition")->text(row), name, cell(".first"), cell(".last"), cell(".min"),
                            cell(".max"), mean_text(summary, name, row)});
    }
  }
  return cells;
}

}  // namespace zs::stat
