// SPDX-License-Identifier: Apache-2.0
#include "comparison/output.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/sheet.hpp"
#include "base/text.hpp"
#include "cli/form.hpp"
#include "compare/verdict.hpp"
#include "metric/file.hpp"

namespace zs::comparison {
namespace {

nlohmann::ordered_json value_of(const metric::Column& column, std::size_t row) {
  if (column.absent(row)) return nullptr;
  if (column.type() == metric::Type::integer) return column.integers()[row];
  if (column.type() == metric::Type::real && std::isfinite(column.reals()[row])) return column.reals()[row];
  return column.text(row);
}

std::string to_text(const Lines& lines) {
  std::string text;
  // A tensor's name and a path are other people's words: none of them makes a line or steers a terminal.
  for (const auto& [key, value] : lines) text += printable(key) + ": " + printable(value) + "\n";
  return text;
}

/// One JSON object: the attributes, an array of steps, the verdict.
std::string to_json(const metric::Run& run, const Lines& verdict) {
  nlohmann::ordered_json document;
  for (const auto& [key, value] : verdict) document[key] = value;
  document["settings"] = run.attributes;
  document["rows"] = nlohmann::ordered_json::array();
  for (std::size_t row = 0; row < run.records.rows(); ++row) {
    nlohmann::ordered_json record;
    for (const metric::Column& column : run.records.columns) record[column.name] = value_of(column, row);
    document["rows"].push_back(record);
  }
  return document.dump(1) + "\n";
}

/// An annotation of GitHub's actions: notice, warning or error.
std::string to_github(const Lines& lines) {
  const std::string verdict = compare::line_of(lines, {"verdict"});
  const auto is_any = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, verdict) != words.end();
  };
  const char* const level =
      is_any({"exact", "equal as printed", "within tolerance", "same", "consistent", "written"})       ? "notice"
      : is_any({"equal up to rounding", "environment", "inconclusive", "no golden", "not comparable"}) ? "warning"
                                                                                                       : "error";
  std::string said = verdict;
  if (const std::string why = compare::line_of(lines, {"headline", "failure", "reason", "kind"}); !why.empty())
    said += ": " + why;
  std::string escaped;
  for (const char c : printable(said))
    escaped += c == '%' ? "%25" : c == '\n' ? "%0A" : c == '\r' ? "%0D" : std::string(1, c);
  return "::" + std::string(level) + " title=zs-verify::" + escaped + "\n";
}

}  // namespace

std::string columns_text(const metric::Table& columns) {
  Sheet sheet;
  for (const metric::Column& column : columns.columns) sheet.header.push_back(column.name);
  sheet.rows.resize(columns.rows());
  for (std::size_t row = 0; row < columns.rows(); ++row) {
    for (const metric::Column& column : columns.columns) {
      sheet.rows[row].push_back(column.type() == metric::Type::real ? to_brief_text(column.reals()[row])
                                                                    : column.text(row));
    }
  }
  return sheet.rows.empty() ? "" : aligned(sheet);
}

void output(const cli::Args& args, metric::Run& run, const Lines& verdict, const std::string& before) {
  for (const auto& [key, value] : verdict) run.attributes[key == "verdict" ? key : "verdict." + key] = value;
  const auto written = [&](const std::string& form) {
    if (form == "text") return before + to_text(verdict);
    if (form == "tsv") return metric::to_tsv({run});
    if (form == "github") return to_github(verdict);
    if (form == "json") return to_json(run, verdict);
    metric::Store store;
    store.runs.push_back(run);
    return metric::to_h5(store);
  };
  print(written(args.text("format")));
  if (args.has("output")) write_file(args.text("output"), written(cli::form_of(args, "h5")));
}

}  // namespace zs::comparison
