// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

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

}  // namespace zs::metric
