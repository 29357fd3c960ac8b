// SPDX-License-Identifier: Apache-2.0
// A named, typed column of a table.
#pragma once
#include <cstdint>
#include <limits>
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

}  // namespace zs::metric
