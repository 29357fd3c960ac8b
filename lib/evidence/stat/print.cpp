// SPDX-License-Identifier: Apache-2.0
#include "stat/print.hpp"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "metric/escape.hpp"

namespace zs::stat {
namespace {

using metric::Column;
using metric::Table;
using Json = nlohmann::ordered_json;

constexpr int kDigits = 7;  // of a loss, unless it is short: "10.555366"
constexpr std::size_t kDigestShown = 12;

std::string loss(double value) { return to_shown_text(value, kDigits); }

std::string seconds(double value) {
  return std::fabs(value) < 0.1 ? to_rounded_text(value * 1e3, 4) + " ms" : to_rounded_text(value, 4) + " s";
}

/// Cells of one column in words; empty where absent.
std::vector<std::string> words(const Column& column, const std::function<std::string(double)>& print) {
  std::vector<std::string> cells;
  for (std::size_t row = 0; row < column.size(); ++row) {
    if (column.absent(row))
      cells.emplace_back();
    else if (column.type() == metric::Type::text)
      cells.push_back(column.texts()[row]);
    else
      cells.push_back(print(column.real(row)));
  }
  return cells;
}

/// "0.4771 s -+ 0.0023": the mean with half the width of its interval.
std::vector<std::string> times(const Table& table) {
  const Column* const mean = table.find("time_mean");
  const Column *const low = table.find("time_low"), *const high = table.find("time_high");
  std::vector<std::string> cells = words(*mean, seconds);
  for (std::size_t row = 0; row < cells.size(); ++row) {
    if (low->absent(row) || high->absent(row)) continue;
    cells[row] += " ± " + to_rounded_text((high->real(row) - low->real(row)) / 2 / mean->real(row) * 100, 2) + " %";
  }
  return cells;
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

Cells for_people(const Table& summary) {
  Cells cells;
  cells.rows.resize(summary.rows());
  const auto add = [&](const std::string& title, const std::vector<std::string>& column) {
    bool any = false;
    for (const std::string& cell : column) any = any || !cell.empty();
    if (!any) return;
    cells.header.push_back(title);
    for (std::size_t row = 0; row < column.size(); ++row)
      cells.rows[row].push_back(column[row].empty() ? "-" : column[row]);
  };
  const auto count = [](double value) { return to_text(static_cast<std::int64_t>(value)); };
  const auto plain = [&](const std::string& title, const std::string& name,
                         const std::function<std::string(double)>& print) {
    if (const Column* const column = summary.find(name)) add(title, words(*column, print));
  };
  plain("condition", "condition", {});
  plain("runs", "runs", count);
  plain("points", "points", count);
  plain("status", "status", {});
  plain("final loss", "final_loss", loss);
  plain("best loss", "best_loss", loss);
  plain("valid loss", "valid_loss", loss);
  add("time (95 %)", times(summary));
  plain("median", "time_median", seconds);
  plain("peak memory", "peak_mem", to_bytes_text);
  for (const auto& [title, name] :
       {std::pair{"tokens/s", "tokens_per_second"}, std::pair{"images/s", "images_per_second"}})
    plain(title, name, [](double value) { return to_rounded_text(value, 4); });
  if (const Column* const digest = summary.find("state_digest")) {
    std::vector<std::string> starts;
    for (const std::string& text : digest->texts()) starts.push_back(text.substr(0, kDigestShown));
    add("state digest", starts);
  }
  plain("reason", "reason", {});
  return cells;
}

Cells divergence_for_people(const Table& divergence) {
  Cells cells{{"condition", "beside", "verdict", "steps", "first difference", "largest", "at step", "digest"}, {}};
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

std::string to_tsv(const Table& table) {
  std::string text;
  for (const Column& column : table.columns) text += (text.empty() ? "" : "\t") + metric::escaped(column.name);
  text += '\n';
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      text += (c ? "\t" : "") + metric::escaped(table.columns[c].text(row));
    }
    text += '\n';
  }
  return text;
}

std::string to_json(const metric::Store& store) {
  Json object;
  object["attributes"] = Json(store.attributes);
  object["conditions"] = records(*store.summary);
  for (const auto& [name, table] : store.tables) object["tables"][name] = records(table);
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zs::stat
