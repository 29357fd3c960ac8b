// SPDX-License-Identifier: Apache-2.0
// The figures of one row of a summary's table, by column name.
#pragma once
#include <array>
#include <cstddef>
#include <optional>

#include "metric/table.hpp"
#include "stat/summary_columns.hpp"

namespace zs::summary {

/// The figures of one row of a summary's table, by column name: row["time_mean"], which the compiler checks. Absent
/// figures have no value.
template <const auto& kColumns>
class Figures {
 public:
  using Column = stat::Place<kColumns>;

  Figures() { values_.fill(metric::absent_real()); }
  std::optional<double> operator[](Column column) const {
    const double value = values_[column.at];
    return metric::is_absent(value) ? std::nullopt : std::optional(value);
  }
  /// A count; 0 if absent.
  std::size_t count(Column column) const {
    const double value = values_[column.at];
    return value > 0 ? static_cast<std::size_t>(value) : 0;
  }
  void set(Column column, double value) { values_[column.at] = value; }
  void read(const metric::Table& table, std::size_t row);

 private:
  std::array<double, kColumns.size()> values_;
};

}  // namespace zs::summary
