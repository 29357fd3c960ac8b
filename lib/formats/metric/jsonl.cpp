// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/sheet.hpp"
#include "metric/file.hpp"

namespace zs::metric {
namespace {

/// JSON text; bytes that are not UTF-8 become U+FFFD.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string value(const Column& column, std::size_t row) {
  const std::string text = column.text(row);
  const bool number =
      column.type() == Type::integer || (column.type() == Type::real && std::isfinite(column.reals()[row]));
  return number ? text : quoted(text);
}

}  // namespace

std::string to_jsonl(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs) {
    const std::string start = "{\"run\":" + quoted(run.name);
    for (std::size_t row = 0; row < run.records.rows(); ++row) {
      text += start;
      for (const Column& column : run.records.columns) {
        if (!column.absent(row)) text += "," + quoted(column.name) + ":" + value(column, row);
      }
      text += "}\n";
    }
  }
  return text;
}

std::string to_csv(const std::vector<Run>& runs) {
  Sheet sheet{{"run"}, {}};
  for (const Run& run : runs) {
    for (const Column& column : run.records.columns) {
      if (std::ranges::find(sheet.header, column.name) == sheet.header.end()) sheet.header.push_back(column.name);
    }
  }
  for (const Run& run : runs) {
    std::vector<const Column*> columns;
    for (std::size_t i = 1; i < sheet.header.size(); ++i) columns.push_back(run.records.find(sheet.header[i]));
    for (std::size_t row = 0; row < run.records.rows(); ++row) {
      auto& cells = sheet.rows.emplace_back(1, run.name);
      for (const Column* const column : columns) cells.push_back(column ? column->text(row) : "");
    }
  }
  return zs::to_csv(sheet);
}

}  // namespace zs::metric
