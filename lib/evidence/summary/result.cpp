// SPDX-License-Identifier: Apache-2.0
#include "summary/result.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "summary/unit.hpp"

namespace zs::summary {
namespace {

/// Numbers by value, then words by letter.
bool before(const std::string& a, const std::string& b) {
  const auto x = parse_real(a), y = parse_real(b);
  if (x && y) return *x != *y ? *x < *y : a < b;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

}  // namespace

double Result::of(const Condition& condition) const {
  return condition[column].value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string Result::text(double value) const {
  if (!std::isfinite(value)) return to_text(value);
  const stat::Kind kind = column.row().kind;
  return kind == stat::Kind::loss ? to_rounded_text(value, 5) : unit_of(kind, value).text(value);
}

bool Result::better(double a, double b) const {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) && !std::isfinite(b);
  return column.row().better == stat::Better::high ? a > b : a < b;
}

Result result(const std::string& name, const std::vector<Condition>& conditions) {
  std::string wanted = name;
  if (wanted.empty()) {
    bool some = false, all = true;  // of those that can be ranked
    for (const Condition& one : conditions) {
      if (one.bad()) continue;
      some = some || one["valid_loss"];
      all = all && (one["valid_loss"] || !one["final_loss"]);
    }
    wanted = some && all ? "valid_loss" : "final_loss";
  }
  std::vector<std::string> names;
  for (std::size_t at = 0; at < stat::kSummaryColumns.size(); ++at) {
    const stat::SummaryColumn& row = stat::kSummaryColumns[at];
    if (row.better == stat::Better::neither) continue;
    names.emplace_back(row.name);
    if (row.name != wanted) continue;
    const std::string unit = row.kind == stat::Kind::loss ? loss_unit(conditions) : std::string(stat::unit(row.kind));
    return {.column = Condition::Column(at), .label = row.titled(unit)};
  }
  throw UsageError("a sweep cannot show '" + wanted + "'" + did_you_mean(wanted, names));
}

const Condition* best_of(const std::vector<Condition>& conditions, const Result& result) {
  const Condition* best = nullptr;
  for (const Condition& condition : conditions) {
    const double value = result.of(condition);
    if (!condition.bad() && std::isfinite(value) && (!best || result.better(value, result.of(*best))))
      best = &condition;
  }
  return best;
}

/// The different values of an attribute, in order; a condition without it counts as "-".
std::vector<std::string> levels(const std::vector<Condition>& conditions, const std::string& key) {
  std::vector<std::string> values;
  for (const Condition& condition : conditions) {
    const std::string value = condition.attribute(key).empty() ? "-" : condition.attribute(key);
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  std::ranges::sort(values, before);
  return values;
}

}  // namespace zs::summary
