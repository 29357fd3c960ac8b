// SPDX-License-Identifier: Apache-2.0
// Named, typed columns of equal length, and what zs keeps in them: runs of records, and summaries.
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

/// "int", "real", "text": as the text form and the HDF5 attribute spell it.
std::string_view name(Type type);
std::optional<Type> type_named(std::string_view name);

/// Absent is not nan: a cell may be empty, or hold the value nan. In memory and in HDF5 an absent integer is
/// INT64_MIN, an absent real is the NaN with payload 1954 (as in R), an absent text is "".
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

  /// REQUIRES: type() is the one asked for.
  std::vector<std::int64_t>& integers() { return std::get<0>(values_); }
  const std::vector<std::int64_t>& integers() const { return std::get<0>(values_); }
  std::vector<double>& reals() { return std::get<1>(values_); }
  const std::vector<double>& reals() const { return std::get<1>(values_); }
  std::vector<std::string>& texts() { return std::get<2>(values_); }
  const std::vector<std::string>& texts() const { return std::get<2>(values_); }

  bool absent(std::size_t row) const;
  /// The cell as a real: integers converted, absent as absent_real(). REQUIRES: not a text column.
  double real(std::size_t row) const;
  /// The cell as the text form writes it: shortest round-trip, "" when absent.
  std::string text(std::size_t row) const;
  /// Drops the cells from row `rows` on.
  void truncate(std::size_t rows);
  /// Appends absent cells until size() is `rows`.
  void pad(std::size_t rows);
  /// Appends `cell` as the text form spells it ("" is absent); false, and nothing appended, if it is not of this type.
  bool append(std::string_view cell);

 private:
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values_;
};

/// A column without its values.
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
  /// The column, made (absent in all rows so far) if it is not there: of the standard type and unit where
  /// the name is a standard one, else of `type`.
  Column& column(std::string_view name, Type type = Type::real, std::string_view unit = "");
  /// Pads every column to the longest one.
  void even_out();
};

/// `table` as both file forms keep the records of a run: without columns that are absent in every row, the others in
/// the order of the row where they first hold a value (those of one row stay as they are).
Table canonical(Table table);

/// A text column as what its cells are: int if all of them are, else real if all are numbers, else text as it was.
Column inferred(Column texts);

/// Name, unit and type of a standard record column (design: step, epoch, loss, iteration_time, ...), or nothing.
struct Standard {
  std::string_view name, unit;
  Type type;
};
const Standard* standard(std::string_view name);

/// One training run: its records (one row per step) and what is known about it, each a string.
struct Run {
  std::string name;
  std::map<std::string, std::string> attributes;  ///< model.name, zero_stage, world_size, state_digest, source, ...
  Table records;

  /// The attribute, or "".
  std::string attribute(const std::string& key) const;
};

/// What a metric file holds: runs, and in a summary also one row per condition and a curve table for each.
struct Store {
  std::vector<Run> runs;
  std::optional<Table> summary;                   ///< one row per condition; column "condition" names it
  std::map<std::string, Table> curves;            ///< condition -> columns step, loss, loss_min, loss_max, ...
  std::map<std::string, Table> tables;            ///< further tables of a summary by name: "divergence", ...
  std::map<std::string, std::string> attributes;  ///< of the whole: "by", "warmup", ...
};

}  // namespace zs::metric
