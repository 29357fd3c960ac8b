// SPDX-License-Identifier: Apache-2.0
// From the fields of a record, as a log spells them, to a row: which column each key means, and whether its value is
// one.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "metric/writer.hpp"
#include "parse/dialect.hpp"
#include "parse/names.hpp"

namespace zs::parse {

using metric::ColumnInfo;

class Records {
 public:
  /// `map`: key of a log -> column that it means, beside the known ones. Map and rows outlive this.
  Records(const std::map<std::string, std::string>& map, metric::Writer& rows) : map_(map), rows_(rows) {}

  /// Where a record stands: rank as text, "" if unknown; part from 1.
  struct Place {
    std::string_view rank;
    std::int64_t line;
    int part;
  };
  /// Passes on a row. Gives what is wrong with each value that was left out.
  std::vector<std::string> add(const std::vector<Field>& fields, const Place& place);

  /// What is odd about the values that --map takes for a column: a key or a value that speaks of another unit than the
  /// column has. A sentence each.
  const std::vector<std::string>& doubts() const { return doubts_; }

  /// Of the keys that are mapped, those that no record had: a sentence each, with the key that may be meant.
  std::vector<std::string> unseen(const std::vector<std::string>& mapped) const;

  /// The column that a field means.
  ColumnName column_of(const Field& field) const;

 private:
  /// For the keys of a record, in order: the field that gives each column, or -1.
  struct Shape {
    std::vector<std::string> keys;
    std::vector<int> field_of_column;
  };

  const Shape& shape_of(std::size_t own);
  std::size_t column_at(const std::string& name, const Field& field);
  bool checked(const ColumnInfo& column, const Field& field, std::string_view& cell);
  void doubt_units(const Field& field);

  const std::map<std::string, std::string>& map_;
  metric::Writer& rows_;
  std::vector<ColumnInfo> columns_;
  std::vector<Shape> shapes_;
  std::size_t last_shape_ = 0;
  std::vector<Field> fields_;
  std::vector<std::string_view> cells_;
  std::vector<std::string> made_;  // cells whose text is not the log's
  std::vector<std::string> doubts_;
  std::set<std::string> seen_;  // keys of the log
};

}  // namespace zs::parse
