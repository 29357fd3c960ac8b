// SPDX-License-Identifier: Apache-2.0
#include "registry/query.hpp"

#include <fmt/ranges.h>

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <filesystem>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "config/known.hpp"
#include "registry/run.hpp"
#include "registry/runs.hpp"
#include "stat/summary_columns.hpp"

namespace zs::registry {
namespace {

/// Accepted names of a column: its name, and its last word.
std::vector<std::string> column_names(const Runs& runs) {
  std::vector<std::string> names;
  for (const Column& column : runs.columns) {
    names.push_back(column.name);
    const std::size_t dot = column.name.rfind('.');
    if (dot != std::string::npos) names.push_back(column.name.substr(dot + 1));
  }
  return names;
}

/// The value of a test in the column's form: "10M" is 10000000 if the setting is a count.
std::string column_value(const std::string& column, const std::string& text) {
  const config::Known* const row = config::known(column);
  const auto count = row && row->type == config::Type::count ? config::parse_count(text) : std::nullopt;
  return count ? to_text(*count) : text;
}

/// The order of two cells; a nan has none, nor have a number and a text.
std::partial_ordering compared(const std::string& a, const std::string& b) {
  const auto x = parse_real(a), y = parse_real(b);
  if (x.has_value() != y.has_value()) return std::partial_ordering::unordered;
  return x ? *x <=> *y : std::partial_ordering(a <=> b);
}

bool equal(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = parse_real(a), y = parse_real(b);
  return x && y && (*x == *y || (std::isnan(*x) && std::isnan(*y)));
}

std::string list(const Runs& runs, const std::vector<std::size_t>& rows) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, rows.size()); ++i)
    text += (i ? ", " : "") + runs.text(rows[i], "run_id");
  return text + (rows.size() > kShown ? ", ..." : "");
}

/// How runs get the outcome of that name, which none has yet; "" for other names.
std::string source_of(const std::string& name) {
  const attribute::Attribute* const row = attribute::find(name);
  if (!row || row->role != attribute::Role::measurement || row->ending) return "";
  if (name.find("valid") != std::string::npos)
    return "no run has been evaluated; zs-train --eval and --eval_steps N evaluate one";
  if (name.starts_with("test_")) return "no run has been tested; zs-train --test_fraction X holds data out for it";
  return "no run has recorded its " + std::string(row->label);
}

/// For an error about an unknown column: the column with a similar name, or whose title has its words; else all
/// existing ones.
std::string near(const Runs& runs, const std::string& name) {
  const std::vector<std::string> names = column_names(runs);
  if (const std::string similar = did_you_mean(name, names); !similar.empty()) return similar;
  for (const config::Known& row : config::known()) {
    if (has_word(row.synonyms, name) && runs.find(std::string(row.key)))
      return ", did you mean '" + std::string(row.key) + "'?";
  }
  std::string words = name;
  std::ranges::replace(words, '_', ' ');
  for (const stat::SummaryColumn& column : stat::kSummaryColumns) {
    if (runs.find(std::string(column.name)) && column.label.find(words) != std::string_view::npos)
      return ", did you mean '" + std::string(column.name) + "'?";
  }
  constexpr std::size_t kShown = 30;
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, runs.columns.size()); ++i)
    list += (i == 0 ? ": there are " : ", ") + runs.columns[i].name;
  return list + (runs.columns.size() > kShown ? ", ..." : "");
}

}  // namespace

std::string resolve_column(const Runs& runs, const std::string& name) {
  if (runs.find(name)) return name;
  if (name == "run.name") return "run_name";
  if (const config::Known* const row = config::known(name)) return std::string(row->key);
  if (const config::Known* const row = config::known_option(name)) return std::string(row->key);
  if (runs.find("final_" + name)) return "final_" + name;  // the name in records, for example of valid_loss
  std::vector<std::string> ends;
  for (const Column& column : runs.columns) {
    if (column.name.ends_with("." + name)) ends.push_back(column.name);
  }
  if (ends.size() == 1) return ends.front();
  if (ends.size() > 1) throw Error(fmt::format("column '{}' may be any of {}", name, fmt::join(ends, ", ")));
  // Trainings of zs and summaries of logs call one outcome by two names.
  for (const auto& [one, other] :
       {std::pair{"final_train_loss", "final_loss"}, std::pair{"final_valid_loss", "valid_loss"}}) {
    for (const auto& [asked, twin] : {std::pair{one, other}, std::pair{other, one}}) {
      if (name == asked && runs.find(twin)) return twin;
    }
  }
  const std::string other = near(runs, name), how = source_of(name);
  const bool asked = how.starts_with("no run has been ");  // evaluated or tested: a similar name is of another outcome
  if (!how.empty() && (asked || !other.starts_with(", did you mean")))
    throw Error("no run has a '" + name + "' yet: " + how);
  throw Error("no run has a column '" + name + "'" + other);
}

bool Filter::holds(const std::string& cell) const {
  const auto order = pattern || cell.empty() ? std::partial_ordering::unordered : compared(cell, value);
  switch (relation) {
    case Relation::equal:
      return equal(cell, value);
    case Relation::unequal:
      return !equal(cell, value);
    case Relation::match:
      return !cell.empty() && RE2::PartialMatch(cell, *pattern);
    case Relation::mismatch:
      return !RE2::PartialMatch(cell, *pattern);
    case Relation::less:
      return order < 0;
    case Relation::at_most:
      return order <= 0;
    case Relation::greater:
      return order > 0;
    case Relation::at_least:
      return order >= 0;
  }
  return false;
}

Filter parse_filter(const Runs& runs, const std::string& text) {
  static constexpr std::pair<std::string_view, Relation> kRelations[] = {
      {"!=", Relation::unequal}, {"!~", Relation::mismatch}, {"<=", Relation::at_most}, {">=", Relation::at_least},
      {"=", Relation::equal},    {"<", Relation::less},      {">", Relation::greater},  {"~", Relation::match}};
  const std::size_t at = text.find_first_of("!=<>~");
  for (const auto& [sign, relation] : kRelations) {
    if (at == 0 || at == std::string::npos || !std::string_view(text).substr(at).starts_with(sign)) continue;
    Filter filter{resolve_column(runs, text.substr(0, at)), relation, text.substr(at + sign.size()), {}};
    if (relation != Relation::match && relation != Relation::mismatch) {
      filter.value = column_value(filter.column, filter.value);
      return filter;
    }
    // Its time grows with the cell's length only, whatever the expression.
    RE2::Options options(RE2::Quiet);
    filter.pattern = std::make_shared<const RE2>(filter.value, options);
    if (!filter.pattern->ok())
      throw UsageError("'" + filter.value + "' is not a regular expression: " + filter.pattern->error());
    return filter;
  }
  throw UsageError("'" + text + "' is not a filter: expected COLUMN=VALUE, or one of != < <= > >= ~ !~");
}

std::vector<std::size_t> select(const Runs& runs, const std::vector<Filter>& filters, bool any) {
  std::vector<char> chosen(runs.size(), filters.empty() || !any);
  for (const Filter& filter : filters) {
    // A filter looks at each distinct value once.
    const Column* const column = runs.find(filter.column);
    std::vector<char> verdicts;
    if (!column)
      verdicts.push_back(filter.holds(""));
    else
      for (const std::string& value : column->values) verdicts.push_back(filter.holds(value));
    for (std::size_t row = 0; row < runs.size(); ++row) {
      const char verdict = verdicts[column ? column->codes[row] : 0];
      chosen[row] = any ? chosen[row] | verdict : chosen[row] & verdict;
    }
  }
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < runs.size(); ++row) {
    if (chosen[row]) rows.push_back(row);
  }
  return rows;
}

void sort_by(const Runs& runs, const std::string& column, bool descending, std::vector<std::size_t>& rows) {
  const Column* const keys = runs.find(column);
  if (!keys) return;  // absent everywhere: all equal
  // Distinct values are ranked once, then rows are sorted by rank. Equal numbers (1 and 1.0) share a rank.
  struct Key {
    int group;  // 0 number, 1 nan, 2 text, 3 absent
    double number;
    std::uint32_t code;
  };
  std::vector<Key> order;
  for (std::uint32_t code = 0; code < keys->values.size(); ++code) {
    const auto number = parse_real(keys->values[code]);
    const int group = code == 0 ? 3 : !number ? 2 : std::isnan(*number) ? 1 : 0;
    order.push_back({group, group == 0 ? *number : 0, code});
  }
  const auto less = [&](const Key& a, const Key& b) {
    if (a.group != b.group) return a.group < b.group;
    if (a.group == 2)
      return descending ? keys->values[b.code] < keys->values[a.code] : keys->values[a.code] < keys->values[b.code];
    return descending ? b.number < a.number : a.number < b.number;
  };
  std::ranges::sort(order, less);
  std::vector<std::uint32_t> ranks(order.size());
  for (std::size_t i = 1; i < order.size(); ++i)
    ranks[order[i].code] = ranks[order[i - 1].code] + less(order[i - 1], order[i]);
  std::ranges::stable_sort(rows,
                           [&](std::size_t a, std::size_t b) { return ranks[keys->codes[a]] < ranks[keys->codes[b]]; });
}

std::size_t find_run(const Runs& runs, const std::string& name) {
  if (name.empty()) throw UsageError("expected a run: its id, the beginning of it, or its name");
  std::vector<std::size_t> by_prefix, by_name;
  std::vector<std::string> names;
  for (std::size_t row = 0; row < runs.size(); ++row) {
    const std::string& id = runs.text(row, "run_id");
    if (id == name) return row;
    if (id.starts_with(name)) by_prefix.push_back(row);
    if (runs.text(row, "run_name") == name) by_name.push_back(row);
    names.push_back(id);
    names.push_back(runs.text(row, "run_name"));
  }
  if (by_prefix.size() == 1) return by_prefix.front();
  if (by_name.size() == 1) return by_name.front();
  if (!by_name.empty())
    throw Error(std::to_string(by_name.size()) + " runs have the name '" + name + "': " + list(runs, by_name));
  if (!by_prefix.empty())
    throw Error(std::to_string(by_prefix.size()) + " runs begin with '" + name + "': " + list(runs, by_prefix));
  constexpr std::size_t kFew = 2000;  // looking for the nearest of very many names takes long
  throw Error("no run '" + name + "'" + (names.size() <= kFew ? did_you_mean(name, names) : ""));
}

Place place_of(const std::string& name, const std::string& registry) {
  if (registered(registry, name)) {  // without a look at all the others
    const std::string folder = (std::filesystem::path(registry) / name).string();
    return {folder, value(read_record(folder), "run_name")};
  }
  const bool exists = is_folder(registry);
  const Runs runs = exists ? read_runs(registry, [](const Fault&) {}) : Runs();
  const Column* const names = exists ? runs.find("run_name") : nullptr;
  if (!exists || (name.find('/') != std::string::npos && !(names && std::ranges::count(names->values, name))))
    throw Error(name, 0, "No such file or directory");  // a path was meant: no run has it as its name
  const std::size_t row = find_run(runs, name);
  return {(std::filesystem::path(registry) / runs.text(row, "run_id")).string(), runs.text(row, "run_name")};
}

}  // namespace zs::registry
