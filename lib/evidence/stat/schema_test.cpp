// SPDX-License-Identifier: Apache-2.0
// zs-metrics(5) and the JSON schemas describe every column. What they say of a summary is made from its table:
//   ZS_WRITE_COLUMNS=1 build/test-light -tc='schema*'
#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "metric/table.hpp"
#include "stat/summary_columns.hpp"

namespace zs::stat {
namespace {

using Json = nlohmann::ordered_json;

const char* const kPage = "man/zs-metrics.5";

std::string contents(const std::string& path) { return Input(path).read_all(); }

/// The file is `wanted`, or is written so where that was asked for.
void check_file(const std::string& path, const std::string& wanted) {
  if (std::getenv("ZS_WRITE_COLUMNS")) write_file(path, wanted);
  CHECK_MESSAGE(contents(path) == wanted, path << ": run ZS_WRITE_COLUMNS=1 build/test-light -tc='schema*'");
}

/// Lines of mdoc of at most 80 bytes.
std::string wrapped(std::string text) {
  for (std::size_t at = 0; (at = text.find(" --", at)) != std::string::npos;) text.replace(at, 3, " \\-\\-");
  std::string lines;
  for (std::size_t start = 0; start < text.size();) {
    std::size_t end = text.size() - start <= 80 ? text.size() : text.rfind(' ', start + 80);
    lines += text.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return lines;
}

/// The rows as items of a list: those without a meaning stand beside the next that has one.
template <typename Columns>
std::string items(const Columns& columns) {
  std::string page, names;
  std::string_view unit;
  bool one_unit = true;
  for (const auto& column : columns) {
    one_unit = one_unit && (names.empty() || unit == stat::unit(column.kind));
    unit = stat::unit(column.kind);
    names += (names.empty() ? ".It Cm " : " , ") + std::string(column.name);
    if (column.meaning.empty()) continue;
    const bool said = column.kind == Kind::loss || !one_unit || unit.empty() || column.meaning.starts_with(unit);
    page += names + "\n" + wrapped((said ? "" : std::string(unit) + "; ") + std::string(column.meaning));
    names.clear(), one_unit = true;
  }
  return page;
}

/// `page` with `text` between the comments that name the table.
std::string filled(const std::string& page, const std::string& table, const std::string& text) {
  const std::string begin = ".\\\" begin " + table + "\n", end = ".\\\" end " + table + "\n";
  const std::size_t from = page.find(begin), to = page.find(end);
  REQUIRE_MESSAGE((from != std::string::npos && to != std::string::npos), kPage << " has no place for " << table);
  return page.substr(0, from + begin.size()) + text + page.substr(to);
}

Json number(metric::Type type) {
  if (type == metric::Type::integer) return {{"type", "integer"}};
  if (type == metric::Type::text) return {{"type", "string"}};
  return {{"anyOf", {{{"type", "number"}}, {{"enum", {"nan", "inf", "-inf"}}}}}};
}

template <typename Columns>
Json properties(const Columns& columns) {
  Json made = Json::object();
  for (const auto& column : columns) made[std::string(column.name)] = number(column.type());
  made["status"] = {{"enum", attribute::kRunStates}};
  return made;
}

}  // namespace

TEST_CASE("schema: zs-metrics(5) and zs-aggregate.json have each column of a summary, as its row says") {
  const std::string page = contents(kPage);
  check_file(kPage, filled(filled(page, "kSummaryColumns", items(kSummaryColumns)), "kRunColumns", items(kRunColumns)));
  const std::string path = "share/schemas/zs-aggregate.json";
  Json schema = Json::parse(contents(path));
  Json& sections = schema["properties"];
  sections["conditions"]["items"]["properties"] = properties(kSummaryColumns);
  Json runs = sections["tables"]["additionalProperties"];
  runs["items"] = {{"type", "object"}, {"properties", properties(kRunColumns)}, {"additionalProperties", false}};
  sections["tables"]["properties"] = {{"runs", std::move(runs)}};
  check_file(path, schema.dump(2) + "\n");
}

TEST_CASE("schema: zs-metrics(5) has each word of how a run ended") {
  const std::string page = contents(kPage);
  for (const std::string_view word : attribute::kRunStates)
    CHECK_MESSAGE(page.find("\n.It " + std::string(word) + "\n") != std::string::npos, kPage << " has no " << word);
}

TEST_CASE("schema: zs-metrics(5) and zs-parse.json have each standard column of records") {
  const std::string page = contents(kPage), path = "share/schemas/zs-parse.json";
  Json schema = Json::parse(contents(path));
  Json columns = {{"run", {{"type", "string"}}}};
  for (const attribute::Attribute* const row : attribute::filtered([](const auto& one) { return one.recorded; })) {
    const std::string unit = row->unit.empty() ? "" : ", " + std::string(row->unit);
    const std::string item =
        ".It Cm " + std::string(row->name) + "\n" + std::string(metric::name(row->type)) + unit + ": ";
    CHECK_MESSAGE(page.find(item) != std::string::npos, kPage << " has no line " << item);
    columns[std::string(row->name)] = number(row->type);
  }
  schema["properties"] = std::move(columns);
  check_file(path, schema.dump(2) + "\n");
}

}  // namespace zs::stat
