// SPDX-License-Identifier: Apache-2.0
// Tables of named, typed columns of equal length: the records of runs, and summaries.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attribute/table.hpp"

namespace zs::metric {

using attribute::Type;

/// "int", "real", "text": the words of the text form and of the HDF5 attribute.
std::string_view name(Type type);
std::optional<Type> type_named(std::string_view name);

/// An absent cell differs from nan. In memory and in HDF5 an absent integer is INT64_MIN, an absent real is the NaN
/// with payload 1954 (as in R), an absent text is "".
inline constexpr std::int64_t kAbsentInteger = std::numeric_limits<std::int64_t>::min();
double absent_real();
bool is_absent(double value);
inline bool is_absent(std::int64_t value) { return value == kAbsentInteger; }

/// A name, a unit ("s", "bytes", "nats/token", "" for none) and values of one type.
class Column {
 public:
  Column() = default;
  Column(std::string name, std::string unit, Type type);

  std::string name, unit;
  Type type() const { return static_cast<Type>(values_.index()); }
  std::size_t size() const;

  /// REQUIRES: type() matches.
  std::vector<std::int64_t>& integers() { return std::get<0>(values_); }
  const std::vector<std::int64_t>& integers() const { return std::get<0>(values_); }
  std::vector<double>& reals() { return std::get<1>(values_); }
  const std::vector<double>& reals() const { return std::get<1>(values_); }
  std::vector<std::string>& texts() { return std::get<2>(values_); }
  const std::vector<std::string>& texts() const { return std::get<2>(values_); }

  bool absent(std::size_t row) const;
  /// The cell as a real: integers are converted, absent is absent_real(). REQUIRES: not a text column.
  double real(std::size_t row) const;
  /// The cell in the text form: shortest round-trip, "" if absent.
  std::string text(std::size_t row) const;
  /// Removes all rows from `rows` on.
  void truncate(std::size_t rows);
  /// Appends absent cells until size() is `rows`.
  void pad(std::size_t rows);
  /// Appends `cell` in the text form ("" is absent). False, with nothing appended, if it has another type.
  bool append(std::string_view cell);

 private:
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values_;
};

/// A column's description, without its values.
struct ColumnInfo {
  std::string name;
  Type type = Type::real;
  std::string unit{};
};

/// Columns of equal length, in order.
struct Table {
  std::vector<Column> columns;

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  const Column* find(std::string_view name) const;
  Column* find(std::string_view name);
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
