// SPDX-License-Identifier: Apache-2.0
// The definition of a summary's column: one row has its name, how it is computed, its titles and where it is shown. The
// two tables of such rows are in summary_columns.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "metric/unit.hpp"
#include "stat/row.hpp"

namespace zs::stat {

/// The kind of the values: decides their unit and format.
enum class Kind : std::uint8_t { words, count, plain, loss, seconds, bytes, rate };

/// "nats/token", "s", "bytes", "1/s" or "".
constexpr std::string_view unit(Kind kind) {
  switch (kind) {
    case Kind::loss:
      return kLossUnit;
    case Kind::seconds:
      return "s";
    case Kind::bytes:
      return "bytes";
    case Kind::rate:
      return "1/s";
    default:
      return "";
  }
}

/// The direction in which values of a result are better.
enum class Better : std::uint8_t { neither, low, high };

/// A column of figures about an `Of`. One of text, whole and real computes it and thereby sets its type.
template <typename Of>
struct ColumnOf {
  std::string_view name;
  Kind kind = Kind::words;
  std::string (*text)(const Of&) = nullptr;
  std::int64_t (*whole)(const Of&) = nullptr;  ///< metric::kAbsentInteger if there is none
  double (*real)(const Of&) = nullptr;         ///< metric::absent_real() if there is none
  std::string_view meaning{};                  ///< in zs-metrics(5); "" if the next row's meaning covers both
  std::string_view label{};                    ///< on an axis and as the result of a sweep
  std::string_view table{};                    ///< its title in the table of zs-aggregate; "": not shown
  std::string_view report{};                   ///< its title in the tables of a report; "": not shown
  int digits = 4;                              ///< significant digits in these
  Better better = Better::neither;             ///< as the result of a sweep; neither: not available
  bool optional = false;                       ///< left out if no row has a value

  constexpr metric::Type type() const {
    return text ? metric::Type::text : whole ? metric::Type::integer : metric::Type::real;
  }
  /// "peak memory of a rank (GB)".
  std::string titled(std::string_view in) const {
    return std::string(label) + (in.empty() ? "" : " (" + std::string(in) + ")");
  }
  void write(RowWriter& row, const Of& source) const {
    if (text)
      row.text(name, text(source));
    else if (whole)
      row.integer(name, whole(source), unit(kind));
    else
      row.real(name, real(source), unit(kind));
  }
};

/// A column of the table `kColumns` by its name; an unknown name does not compile.
template <const auto& kColumns>
struct Place {
  std::size_t at = 0;

  consteval Place(const char* name) {  // implicit: condition["time_mean"]
    while (at < kColumns.size() && kColumns[at].name != name) ++at;
    if (at == kColumns.size()) throw std::logic_error("no such column");
  }
  explicit constexpr Place(std::size_t at) : at(at) {}

  constexpr const auto& row() const { return kColumns[at]; }
};

}  // namespace zs::stat
