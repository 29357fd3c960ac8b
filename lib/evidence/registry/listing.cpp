// SPDX-License-Identifier: Apache-2.0
#include "registry/listing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "config/known.hpp"
#include "registry/query.hpp"
#include "stat/sample.hpp"

namespace zs::registry {
namespace {

/// All columns ordered by topic, within one as the table has them.
std::vector<const Column*> by_topic(const Runs& runs) {
  std::vector<const Column*> columns;
  for (const Column& column : runs.columns) columns.push_back(&column);
  std::ranges::stable_sort(columns, [](const Column* a, const Column* b) { return topic(a->name) < topic(b->name); });
  return columns;
}

bool differs(const Column& column, const std::vector<std::size_t>& rows) {
  return std::ranges::any_of(rows, [&](std::size_t row) { return column.codes[row] != column.codes[rows.front()]; });
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
  std::unordered_set<std::string_view> listed;
  const auto put = [&](const Column& column) {
    if (listed.insert(column.name).second) names.push_back(column.name);
  };
  const auto add = [&](const std::string& name) {
    if (const Column* const column = runs.find(name)) put(*column);
  };
  const auto somewhere = [&](const Column& column) {
    return std::ranges::any_of(rows, [&](std::size_t row) { return column.codes[row] != 0; });
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

/// A name of letters, digits and '_', as a metric may have; no other column's.
std::string metric_name(const std::string& column, std::set<std::string>& taken) {
  std::string name = "zs_run_";
  for (const char c : column) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  while (!taken.insert(name).second) name += "_";
  return name;
}

std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return to_text(value);
}

constexpr std::size_t kMost = 5;  // values of a column that are listed one by one

/// "gpt2 (3), tiny (1), 4 more".
std::string frequent(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), kMost); ++i)
    text += (i ? ", " : "") + order[i].first + " (" + std::to_string(order[i].second) + ")";
  return order.size() > kMost ? text + ", " + std::to_string(order.size() - kMost) + " more" : text;
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
    std::ranges::reverse(answer.rows);
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
    const auto count = std::ranges::count_if(column->codes, [](std::uint32_t code) { return code != 0; });
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

std::string to_openmetrics(const Sheet& sheet) {
  const auto cell = [&](const std::vector<std::string>& row, const char* column) {
    const auto at = std::ranges::find(sheet.header, column);
    return at == sheet.header.end() ? std::string() : row[static_cast<std::size_t>(at - sheet.header.begin())];
  };
  const auto labels = [&](const std::vector<std::string>& row, const std::string& more) {
    std::string text;
    for (const char* const column : {"run_id", "run_name", "sweep_name"}) {
      if (const std::string value = cell(row, column); !value.empty())
        text += (text.empty() ? "" : ",") + std::string(column) + "=\"" + quoted(value) + "\"";
    }
    return "{" + text + (text.empty() || more.empty() ? "" : ",") + more + "}";
  };
  std::set<std::string> taken = {"zs_run_status"};
  std::string text;
  for (std::size_t i = 0; i < sheet.header.size(); ++i) {
    const std::string& column = sheet.header[i];
    if (topic(column) != Topic::metric) continue;
    std::string samples;
    for (const auto& row : sheet.rows) {
      if (const auto number = parse_real(row[i])) samples += labels(row, "") + " " + value_text(*number) + "\n";
    }
    if (samples.empty()) continue;
    const std::string name = metric_name(column, taken);
    text += "# TYPE " + name + " gauge\n# HELP " + name + " " + quoted(std::string(attribute::label(column))) + "\n";
    for (std::size_t at = 0; at < samples.size(); at = samples.find('\n', at) + 1)
      text += name + samples.substr(at, samples.find('\n', at) + 1 - at);
  }
  std::string states;
  for (const auto& row : sheet.rows) {
    if (const std::string status = cell(row, "status"); !status.empty())
      states += "zs_run_status" + labels(row, "status=\"" + quoted(status) + "\"") + " 1\n";
  }
  if (!states.empty()) text += "# TYPE zs_run_status gauge\n# HELP zs_run_status what has become of the run\n" + states;
  return text + "# EOF\n";
}

Sheet statistics(const Sheet& sheet) {
  Sheet made{{"column", "runs", "values", "mean", "std", "min", "25%", "50%", "75%", "max", "not_finite", "which"}, {}};
  for (std::size_t column = 0; column < sheet.header.size(); ++column) {
    if (sheet.header[column] == "run_id") continue;
    std::map<std::string, std::size_t> counts;
    stat::Sample finite;
    std::set<double> different;
    std::size_t runs = 0, numbers = 0;
    for (const auto& row : sheet.rows) {
      if (row[column].empty()) continue;
      ++runs, ++counts[row[column]];
      const auto number = parse_real(row[column]);
      if (!number) continue;
      ++numbers;
      if (!std::isfinite(*number)) continue;
      finite.push_back(*number), different.insert(*number);
    }
    if (runs == 0) continue;
    const bool numeric = numbers == runs && !finite.empty();
    std::vector<std::string> cells(made.header.size());
    cells[0] = sheet.header[column], cells[1] = std::to_string(runs), cells[2] = std::to_string(counts.size());
    if (numeric) {
      cells[2] = std::to_string(different.size());
      std::size_t at = 3;
      for (const double value :
           {stat::mean(finite), stat::deviation(finite), stat::quantile(finite, 0), stat::quantile(finite, 0.25),
            stat::median(finite), stat::quantile(finite, 0.75), stat::quantile(finite, 1)})
        cells[at++] = std::isnan(value) ? "" : to_text(value);
      if (finite.size() < runs) cells[at] = std::to_string(runs - finite.size());
    }
    if (!numeric || (counts.size() <= kMost && counts.size() < runs)) cells.back() = frequent(counts);
    made.rows.push_back(std::move(cells));
  }
  return made;
}

}  // namespace zs::registry
