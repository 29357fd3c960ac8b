// SPDX-License-Identifier: Apache-2.0
// Tables of named, typed columns of equal length: the records of runs, and summaries.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribute/table.hpp"
#include "metric/column.hpp"

namespace zs::metric {

/// Columns of equal length, in order.
struct Table {
  std::vector<Column> columns;

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  const Column* find(std::string_view name) const;
  Column* find(std::string_view name);
  /// The text of a cell; "" if it is absent, or the column is.
  std::string text(std::string_view column, std::size_t row) const;
  /// The column; created, absent in all rows so far, if it does not exist: with the standard type and unit if the name
  /// is a standard one, else with `type`.
  Column& column(std::string_view name, Type type = Type::real, std::string_view unit = "");
  /// Pads every column to the longest one.
  void even_out();
};

/// `table` as both file forms store a run's records: without columns that are absent in every row; columns in the order
/// of the row where each first has a value (within a row the order is kept).
Table canonical(Table table);

/// A text column converted to the type of its cells: int if all are integers, else real if all are numbers, else text.
Column inferred(Column texts);

/// Name, unit and type of a standard record column (design: step, epoch, loss, iteration_time, ...).
struct Standard {
  std::string_view name, unit;
  Type type;
};
const Standard* standard(std::string_view name);

/// One training run: its records (one row per step) and its attributes as text.
struct Run {
  std::string name;
  std::map<std::string, std::string> attributes;  ///< model.name, zero_stage, world_size, state_digest, source, ...
  Table records;

  /// The attribute, or "" if absent.
  std::string attribute(const std::string& key) const;
};

/// The content of a metric file: runs; a summary also has a row per condition and a table of curves for each.
struct Store {
  std::vector<Run> runs;
  std::optional<Table> summary;                   ///< one row per condition, named by column "condition"
  std::map<std::string, Table> curves;            ///< condition -> columns step, loss, loss_min, loss_max, ...
  std::map<std::string, Table> tables;            ///< further tables of a summary by name: "divergence", ...
  std::map<std::string, std::string> attributes;  ///< of the whole store: "by", "warmup", ...
};

}  // namespace zs::metric
