// SPDX-License-Identifier: Apache-2.0
#include "registry/listing.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/number.hpp"
#include "config/known.hpp"
#include "registry/query.hpp"

namespace zs::registry {
namespace {

/// All columns ordered by topic, within one as the table has them.
std::vector<const Column*> by_topic(const Runs& runs) {
  std::vector<const Column*> columns;
  for (const Column& column : runs.columns) columns.push_back(&column);
  std::stable_sort(columns.begin(), columns.end(),
                   [](const Column* a, const Column* b) { return topic(a->name) < topic(b->name); });
  return columns;
}

bool differs(const Column& column, const std::vector<std::size_t>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](std::size_t row) { return column.codes[row] != column.codes[rows.front()]; });
}

bool same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = parse_real(a), y = parse_real(b);
  return x && y && *x == *y;
}

/// Id, name, the columns of `wanted`, status, the loss, the settings that differ among `rows`, the other metrics, where
/// Slurm ran them; none twice, and none that is empty. A table is cut at the right.
std::vector<std::string> telling_columns(const Runs& runs, const std::vector<std::size_t>& rows,
                                         const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> there;
  const auto put = [&](const Column& column) {
    if (there.insert(column.name).second) names.push_back(column.name);
  };
  const auto add = [&](const std::string& name) {
    if (const Column* const column = runs.find(name)) put(*column);
  };
  const auto somewhere = [&](const Column& column) {
    return std::any_of(rows.begin(), rows.end(), [&](std::size_t row) { return column.codes[row] != 0; });
  };
  const auto add_known = [&](const std::string& name) {
    if (const Column* const column = runs.find(name); column && somewhere(*column)) put(*column);
  };
  for (const char* const name : {"run_id", "run_name"}) add(name);
  for (const std::string& name : wanted) add(name);
  add("status");
  // One loss before the settings, of which a mixed registry has many.
  const Column* const valid = runs.find("final_valid_loss");
  add_known(valid && somewhere(*valid) ? "final_valid_loss" : "final_train_loss");
  for (const Column& column : runs.columns) {
    if (topic(column.name) == Topic::configuration && differs(column, rows)) put(column);
  }
  for (const Column& column : runs.columns) {
    if (topic(column.name) == Topic::metric && somewhere(column)) put(column);
  }
  for (const char* const name : {"slurm_job_id", "slurm_job_nodelist", "restarts"}) add_known(name);
  add("timestamp");
  return names;
}

}  // namespace

Topic topic(std::string_view column) {
  using attribute::Role;
  const attribute::Attribute* const row = attribute::find(column);
  if (config::known(column)) return Topic::configuration;
  if (row && row->leads) return Topic::identity;
  if (!row) return column.find('.') == std::string_view::npos ? Topic::metric : Topic::configuration;
  if (row->role == Role::measurement) return row->ending ? Topic::environment : Topic::metric;
  return row->role == Role::identity || row->found ? Topic::environment : Topic::configuration;
}

std::string_view name(Topic topic) {
  static constexpr std::array kNames = {"identity", "configuration", "environment", "metric"};
  return kNames[static_cast<std::size_t>(topic)];
}

Answer ask(const Runs& runs, const Question& question) {
  Answer answer;
  std::vector<Filter> filters;
  std::vector<std::string> wanted;
  for (const std::string& text : question.filters)
    wanted.push_back(filters.emplace_back(parse_filter(runs, text)).column);
  if (question.any && filters.size() < 2) throw UsageError("'or' needs two filters or more");
  answer.rows = select(runs, filters, question.any);
  if (question.sweep)
    std::erase_if(answer.rows, [&](std::size_t row) { return runs.text(row, "sweep_name") != *question.sweep; });
  if (!question.sort_by.empty()) {
    answer.sorted = resolve_column(runs, question.sort_by);
    wanted.insert(wanted.begin(), answer.sorted);
    sort_by(runs, answer.sorted, question.descending, answer.rows);
  } else if (question.descending) {
    std::reverse(answer.rows.begin(), answer.rows.end());
  }
  answer.matching = answer.rows.size();
  if (question.limit) answer.rows.resize(std::min(answer.rows.size(), *question.limit));

  if (!question.show.empty()) {
    for (const std::string& name : question.show) answer.columns.push_back(resolve_column(runs, name));
  } else if (question.telling) {
    answer.columns = telling_columns(runs, answer.rows, wanted);
  } else {
    for (const Column& column : runs.columns) answer.columns.push_back(column.name);
  }
  for (const std::string& name : question.hide) std::erase(answer.columns, resolve_column(runs, name));
  if (answer.columns.empty()) throw UsageError("no column is left to show");
  return answer;
}

Sheet listing(const Runs& runs, const std::vector<std::size_t>& rows, const std::vector<std::string>& columns) {
  std::unordered_map<std::string_view, const Column*> named;
  for (const Column& column : runs.columns) named.emplace(column.name, &column);
  std::vector<const Column*> found;
  for (const std::string& name : columns) found.push_back(named.contains(name) ? named[name] : nullptr);
  Sheet sheet{columns, {}};
  for (const std::size_t row : rows) {
    auto& cells = sheet.rows.emplace_back();
    for (const Column* const column : found) cells.push_back(column ? column->text(row) : "");
  }
  return sheet;
}

Sheet column_listing(const Runs& runs) {
  Sheet sheet{{"column", "topic", "runs", "values", "example"}, {}};
  for (const Column* const column : by_topic(runs)) {
    const auto count =
        std::count_if(column->codes.begin(), column->codes.end(), [](std::uint32_t code) { return code != 0; });
    const std::string example = column->values.size() > 1 ? column->values[1] : "";
    sheet.rows.push_back({column->name, std::string(name(topic(column->name))),
                          to_text(static_cast<std::int64_t>(count)),
                          to_text(static_cast<std::int64_t>(column->values.size() - 1)), example});
  }
  return sheet;
}

Sheet run_listing(const Runs& runs, std::size_t row) {
  Sheet sheet{{"topic", "field", "value"}, {}};
  for (const Column* const column : by_topic(runs)) {
    if (column->codes[row] != 0)
      sheet.rows.push_back({std::string(name(topic(column->name))), column->name, column->text(row)});
  }
  return sheet;
}

Sheet difference(const Runs& runs, std::size_t a, std::size_t b) {
  Sheet sheet{{"topic", "field", runs.text(a, "run_id"), runs.text(b, "run_id")}, {}};
  for (const Column* const column : by_topic(runs)) {
    const bool told = topic(column->name) != Topic::identity || column->name == "status";
    if (told && !same(column->text(a), column->text(b))) {
      sheet.rows.push_back({std::string(name(topic(column->name))), column->name, column->text(a), column->text(b)});
    }
  }
  return sheet;
}

}  // namespace zs::registry
