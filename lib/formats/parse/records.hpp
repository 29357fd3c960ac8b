// SPDX-License-Identifier: Apache-2.0
// Converts the fields of a log's record to a row:
// finds the column of each key and checks its value.
#pragma once
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
  /// `map`: key of a log -> its column, in addition to the known ones. Map and rows must outlive this.
  Records(const std::map<std::string, std::string>& map, metric::Writer& rows) : map_(map), rows_(rows) {}

  /// The origin of a record: rank as text, "" if unknown; part from 1.
  struct Place {
    std::string_view rank;
    std::int64_t line;
    int part;
  };
  /// Passes on a row. Returns a message for each value that was left out.
  std::vector<std::string> add(const std::vector<Field>& fields, const Place& place);

  /// Suspicious values that --map takes for a column: the key or value suggests a unit other than the column's. One
  /// sentence each.
  const std::vector<std::string>& doubts() const { return doubts_; }

  /// The keys of `mapped` that no record had: a sentence each, with a similar key of the log.
  std::vector<std::string> unseen(const std::vector<std::string>& mapped) const;

  ColumnName column_of(const Field& field) const;

 private:
  /// For the keys of a record, in order: the field of each column, or -1.
  struct Shape {
    std::vector<std::string> keys;
    std::vector<int> field_of_column;
  };

  const Shape& shape_of(std::size_t logged);
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
  std::vector<std::string> made_;  // cells whose text differs from the log's
  std::vector<std::string> doubts_;
  std::set<std::string> seen_;  // keys of the log
};

}  // namespace zs::parse
