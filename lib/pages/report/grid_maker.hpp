// SPDX-License-Identifier: Apache-2.0
// Tables of conditions: a row each, and a column for each figure.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metric/table.hpp"
#include "report/document.hpp"
#include "report/findings.hpp"
#include "report/words.hpp"
#include "summary/unit.hpp"

namespace zs::report {

Cell nothing();
Cell status_cell(const Condition& condition);
Cell name_cell(const Condition& condition, bool with_status = true);

/// The column of a summary with the values of all conditions; nan where a condition has none.
std::vector<double> values(const Findings& found, Condition::Column column);
bool has(const Findings& found, Condition::Column column);
/// The largest finite value; 0 without one.
double largest(const std::vector<double>& values);

/// Builds tables column by column, leaving out those that no condition has a value for.
class GridMaker {
 public:
  GridMaker(const Findings& found, Tracer& tracer);

  template <typename CellOf>
  void column(const std::string& title, const CellOf& cell_of) {
    grid_.header.push_back(title);
    grid_.numeric.push_back(true);
    for (std::size_t i = 0; i < found_.conditions.size(); ++i) grid_.rows[i].push_back(cell_of(i));
  }
  /// A column of the summary, each number traced, all with the same number of decimals.
  void number(Condition::Column which, const summary::Unit& unit = {});
  /// "low to high".
  void interval(const std::string& title, Condition::Column low, Condition::Column high, const summary::Unit& unit);
  /// A figure that runs report themselves, as the mean of each condition.
  void mean(const std::string& title, const std::string& name, summary::Unit (*unit_of)(double));
  /// Makes the smallest number of the last column strong, if it has that title: among conditions that did not fail, and
  /// unless all are equal.
  void mark_least(const std::string& title);
  bool marked() const { return marked_; }

  Grid take() { return std::move(grid_); }

 private:
  void numbers(const std::string& title, const std::vector<Condition::Column>& columns, const summary::Unit& unit);

  const Findings& found_;
  Tracer& tracer_;
  Grid grid_;
  bool marked_ = false;
};

// Tables with rows that depend on the data: facts by name, outliers.

/// A number on which the runs of a condition agree; "-" if there is none.
/// A fraction of samples that are right is shown in per cent.
Cell fact_cell(const Condition& condition, const std::string& name);
/// A row for each fact whose name begins with `beginning`, a column per condition; nothing if there is none.
std::optional<Grid> fact_grid(const Findings& found, std::string_view beginning, const std::string& title);
/// Every outlier among similar runs; nothing if the summary has no such table.
std::optional<Grid> outlier_grid(const metric::Store& store);

}  // namespace zs::report
