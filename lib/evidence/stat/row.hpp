// SPDX-License-Identifier: Apache-2.0
// Fills a table row by row, cell by cell: columns are created in the order of their first cell.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "metric/table.hpp"
#include "metric/unit.hpp"

namespace zs::stat {

/// The default unit of losses; summarize() replaces it by the unit of the runs.
inline constexpr const char* kLossUnit = metric::kLossOfTokens;

/// Each name once per row, the same names in every row.
class RowWriter {
 public:
  explicit RowWriter(metric::Table& table) : table_(&table) {}

  void text(std::string_view name, std::string value) {
    column(name, metric::Type::text, "").texts().push_back(std::move(value));
  }
  void integer(std::string_view name, std::int64_t value, std::string_view unit = "") {
    column(name, metric::Type::integer, unit).integers().push_back(value);
  }
  void count(std::string_view name, std::size_t value) { integer(name, static_cast<std::int64_t>(value)); }
  void real(std::string_view name, double value, std::string_view unit = "") {
    column(name, metric::Type::real, unit).reals().push_back(value);
  }

 private:
  metric::Column& column(std::string_view name, metric::Type type, std::string_view unit) {
    metric::Column* const found = table_->find(name);
    return found ? *found : table_->columns.emplace_back(std::string(name), std::string(unit), type);
  }

  metric::Table* table_;
};

}  // namespace zs::stat
