// SPDX-License-Identifier: Apache-2.0
#include "stat/print.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "stat/summary_columns.hpp"

namespace zs::stat {
namespace {

using metric::Column;
using metric::Table;
using Json = nlohmann::ordered_json;

constexpr std::size_t kDigestShown = 12;

/// A number as the table for people prints its kind.
std::string shown(Kind kind, double value) {
  switch (kind) {
    case Kind::loss:
      return to_shown_text(value, 7);  // unless it is short: "10.555366"
    case Kind::seconds:
      return std::fabs(value) < 0.1 ? to_rounded_text(value * 1e3, 4) + " ms" : to_rounded_text(value, 4) + " s";
    case Kind::bytes:
      return to_bytes_text(value);
    case Kind::rate:
      return to_rounded_text(value, 4);
    default:
      return to_text(static_cast<std::int64_t>(value));
  }
}

/// " ± 0.5 %": half the width of the mean's interval, if it has one.
std::string half_width(const Table& table, double mean, std::size_t row) {
  const Column *const low = table.find("time_low"), *const high = table.find("time_high");
  if (!low || !high || low->absent(row) || high->absent(row)) return "";
  return " ± " + to_rounded_text((high->real(row) - low->real(row)) / 2 / mean * 100, 2) + " %";
}

/// The cell in words; "" if it is absent.
std::string cell(const SummaryColumn& column, const Table& table, std::size_t row) {
  const Column& values = *table.find(column.name);
  if (values.absent(row)) return "";
  if (values.type() == metric::Type::text) {
    const std::string& text = values.texts()[row];
    return column.name == "state_digest" ? text.substr(0, kDigestShown) : text;
  }
  const std::string text = shown(column.kind, values.real(row));
  return column.name == "time_mean" ? text + half_width(table, values.real(row), row) : text;
}

Json value(const Column& column, std::size_t row) {
  if (column.type() == metric::Type::integer) return column.integers()[row];
  if (column.type() == metric::Type::real && std::isfinite(column.reals()[row])) return column.reals()[row];
  return column.text(row);
}

Json records(const Table& table) {
  Json rows = Json::array();
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Json& object = rows.emplace_back(Json::object());
    for (const Column& column : table.columns) {
      if (!column.absent(row)) object[column.name] = value(column, row);
    }
  }
  return rows;
}

}  // namespace

Sheet for_people(const Table& summary) {
  Sheet cells;
  cells.rows.resize(summary.rows());
  for (const SummaryColumn& column : kSummaryColumns) {
    const Column* const values = column.table.empty() ? nullptr : summary.find(column.name);
    bool any = false;
    for (std::size_t row = 0; values && row < summary.rows(); ++row) any = any || !values->absent(row);
    if (!any) continue;
    cells.header.emplace_back(column.table);
    for (std::size_t row = 0; row < summary.rows(); ++row) {
      const std::string text = cell(column, summary, row);
      cells.rows[row].push_back(text.empty() ? "-" : text);
    }
  }
  return cells;
}

Sheet divergence_for_people(const Table& divergence) {
  Sheet cells{{"condition", "baseline", "verdict", "steps", "first difference", "largest", "at step", "digest"}, {}};
  const auto cell = [&](const char* name, std::size_t row) { return divergence.find(name)->text(row); };
  for (std::size_t row = 0; row < divergence.rows() && cell("baseline", row) == cell("baseline", 0); ++row) {
    const Column& largest = *divergence.find("loss_difference");
    const std::string first = cell("first_difference", row);
    cells.rows.push_back(
        {cell("condition", row), cell("baseline", row), cell("verdict", row), cell("steps", row),
         first.empty() ? "-" : "step " + first, largest.absent(row) ? "-" : to_rounded_text(largest.real(row), 3),
         first.empty() ? "-" : cell("difference_step", row), cell("digest", row).empty() ? "-" : cell("digest", row)});
  }
  return cells;
}

Sheet sheet_of(const Table& table) {
  Sheet sheet;
  for (const Column& column : table.columns) sheet.header.push_back(column.name);
  sheet.rows.resize(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const Column& column : table.columns) sheet.rows[row].push_back(column.text(row));
  }
  return sheet;
}

std::string to_json(const metric::Store& store) {
  Json object;
  object["attributes"] = Json(store.attributes);
  object["conditions"] = records(*store.summary);
  for (const auto& [name, table] : store.tables) object["tables"][name] = records(table);
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zs::stat
