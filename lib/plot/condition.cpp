// SPDX-License-Identifier: Apache-2.0
#include "plot/condition.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/number.hpp"
#include "stat/summary.hpp"

namespace zs::plot {
namespace {

std::optional<std::int64_t> integer(const metric::Table& table, std::string_view name, std::size_t row) {
  const metric::Column* const column = table.find(name);
  if (!column || column->type() != metric::Type::integer || column->absent(row)) return {};
  return column->integers()[row];
}

std::optional<double> real(const metric::Table& table, std::string_view name, std::size_t row) {
  const metric::Column* const column = table.find(name);
  if (!column || column->type() == metric::Type::text || column->absent(row)) return {};
  return column->real(row);
}

std::string text(const metric::Table& table, std::string_view name, std::size_t row) {
  const metric::Column* const column = table.find(name);
  return column && column->type() == metric::Type::text ? column->texts()[row] : "";
}

/// "a,b" as a and b.
std::vector<std::string> listed(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

/// The warm-up that a summary's note begins with: a number, or "auto" (nothing). Without a note nothing is left out.
std::optional<std::size_t> warmup(const std::string& note) {
  if (note.starts_with("auto")) return {};
  const auto number = parse_int(std::string_view(note).substr(0, note.find_first_not_of("0123456789")));
  return number && *number > 0 ? static_cast<std::size_t>(*number) : 0;
}

/// Losses by step, their bits.
std::map<double, std::uint64_t> losses(const metric::Table& curve) {
  std::map<double, std::uint64_t> result;
  const metric::Column* const steps = curve.find("step");
  const metric::Column* const values = curve.find("loss");
  for (std::size_t row = 0; steps && values && row < curve.rows(); ++row) {
    if (!steps->absent(row) && !values->absent(row))
      result[steps->real(row)] = std::bit_cast<std::uint64_t>(values->real(row));
  }
  return result;
}

}  // namespace

bool Condition::bad() const {
  static const std::vector<std::string> kBad = {"FAILED", "DIVERGED", "TRUNCATED", "DEAD"};
  return std::find(kBad.begin(), kBad.end(), status) != kBad.end();
}

std::string Condition::attribute(const std::string& key) const {
  std::string common;
  for (const stat::Member& member : members) {
    const std::string value = member.run->attribute(key);
    if (value.empty()) continue;
    if (!common.empty() && common != value) return "";
    common = value;
  }
  return common;
}

metric::Store summarized(metric::Store store, std::vector<std::string>& warnings) {
  if (store.summary || store.runs.empty()) return store;
  stat::Summary made = stat::summarize(std::move(store), {});
  warnings.insert(warnings.end(), made.warnings.begin(), made.warnings.end());
  return std::move(made.store);
}

std::vector<Condition> conditions(const metric::Store& store, const std::string& source) {
  if (!store.summary) throw Error(source, 0, "holds no summary (make one with zs-aggregate)");
  const metric::Table& table = *store.summary;
  const metric::Column* const names = table.find("condition");
  if (!names || names->type() != metric::Type::text) {
    throw Error(source, 0, "the summary has no column 'condition' (make it with zs-aggregate)");
  }
  const auto attribute = [&](const std::string& key) {
    const auto found = store.attributes.find(key);
    return found == store.attributes.end() ? "" : found->second;
  };
  std::vector<stat::Condition> grouped;
  if (!store.runs.empty()) grouped = stat::conditions(store, listed(attribute("by")), {warmup(attribute("warmup"))});
  std::vector<Condition> all;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Condition condition;
    condition.name = names->texts()[row];
    condition.status = text(table, "status", row);
    if (condition.status.empty()) condition.status = "UNKNOWN";
    condition.place = row;
    condition.runs = integer(table, "runs", row);
    condition.points = integer(table, "points", row);
    condition.final_step = integer(table, "final_step", row);
    condition.time_points = integer(table, "time_points", row);
    condition.peak_mem = integer(table, "peak_mem", row);
    condition.alloc_mem = integer(table, "alloc_mem", row);
    condition.comm_bytes = integer(table, "comm_bytes", row);
    condition.first_loss = real(table, "first_loss", row);
    condition.final_loss = real(table, "final_loss", row);
    condition.best_loss = real(table, "best_loss", row);
    condition.mean_loss = real(table, "mean_loss", row);
    condition.valid_loss = real(table, "valid_loss", row);
    condition.time_mean = real(table, "time_mean", row);
    condition.time_median = real(table, "time_median", row);
    condition.time_std = real(table, "time_std", row);
    condition.time_low = real(table, "time_low", row);
    condition.time_high = real(table, "time_high", row);
    condition.tokens_per_second = real(table, "tokens_per_second", row);
    condition.state_digest = text(table, "state_digest", row);
    condition.reason = text(table, "reason", row);
    const auto own = std::find_if(grouped.begin(), grouped.end(),
                                  [&](const stat::Condition& one) { return one.name == condition.name; });
    if (own != grouped.end()) condition.members = std::move(own->members);
    const auto curve = store.curves.find(condition.name);
    if (curve != store.curves.end() && curve->second.rows() > 0) condition.curve = &curve->second;
    all.push_back(std::move(condition));
  }
  return all;
}

Agreement agreement(const std::vector<Condition>& conditions) {
  Agreement result;
  std::map<double, std::uint64_t> known;  // the loss at each step that any has logged so far
  std::size_t steps = 0;
  bool curves = true, digests = true;
  result.same_steps = true;
  for (const Condition& condition : conditions) {
    if (condition.curve) {
      const auto own = losses(*condition.curve);
      std::size_t shared = 0;
      for (const auto& [step, bits] : own) {
        const auto [place, is_new] = known.try_emplace(step, bits);
        if (is_new) continue;
        ++shared;
        curves = curves && place->second == bits;
      }
      if (result.with_curve > 0) {
        curves = curves && shared > 0;
        result.same_steps = result.same_steps && own.size() == steps && shared == steps;
      }
      steps = own.size();
      ++result.with_curve;
    }
    if (!condition.state_digest.empty()) {
      ++result.with_digest;
      if (result.digest.empty())
        result.digest = condition.state_digest;
      else
        digests = digests && result.digest == condition.state_digest;
    }
  }
  result.curves = curves && result.with_curve >= 2;
  result.digests = digests && result.with_digest >= 2;
  if (!digests) result.digest.clear();
  return result;
}

}  // namespace zs::plot
