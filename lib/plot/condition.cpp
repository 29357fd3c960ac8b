// SPDX-License-Identifier: Apache-2.0
#include "plot/condition.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"

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

/// Same steps, same bits.
bool same_curve(const metric::Table& a, const metric::Table& b) {
  const metric::Column* const steps_a = a.find("step");
  const metric::Column* const steps_b = b.find("step");
  const metric::Column* const losses_a = a.find("loss");
  const metric::Column* const losses_b = b.find("loss");
  if (!steps_a || !steps_b || !losses_a || !losses_b || a.rows() != b.rows()) return false;
  for (std::size_t i = 0; i < a.rows(); ++i) {
    if (steps_a->real(i) != steps_b->real(i)) return false;
    if (std::bit_cast<std::uint64_t>(losses_a->real(i)) != std::bit_cast<std::uint64_t>(losses_b->real(i))) return false;
  }
  return true;
}

}  // namespace

bool Condition::bad() const {
  static const std::vector<std::string> kBad = {"FAILED", "DIVERGED", "TRUNCATED", "DEAD"};
  return std::find(kBad.begin(), kBad.end(), status) != kBad.end();
}

std::string Condition::attribute(const std::string& key) const {
  std::string common;
  for (const metric::Run* const run : members) {
    const std::string value = run->attribute(key);
    if (value.empty()) continue;
    if (!common.empty() && common != value) return "";
    common = value;
  }
  return common;
}

std::vector<Condition> conditions(const metric::Store& store, const std::string& source) {
  if (!store.summary) throw Error(source, 0, "holds no summary (make one with zs-aggregate)");
  const metric::Table& table = *store.summary;
  const metric::Column* const names = table.find("condition");
  if (!names || names->type() != metric::Type::text) {
    throw Error(source, 0, "the summary has no column 'condition' (make it with zs-aggregate)");
  }
  const auto by = store.attributes.find("by");
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
    for (const metric::Run& run : store.runs) {
      const bool grouped = by != store.attributes.end() && !by->second.empty();
      if (run.name == condition.name || (grouped && run.attribute(by->second) == condition.name)) {
        condition.members.push_back(&run);
      }
    }
    const auto curve = store.curves.find(condition.name);
    if (curve != store.curves.end() && curve->second.rows() > 0) condition.curve = &curve->second;
    all.push_back(std::move(condition));
  }
  return all;
}

Agreement agreement(const std::vector<Condition>& conditions) {
  Agreement result;
  const metric::Table* first = nullptr;
  bool curves = true, digests = true;
  for (const Condition& condition : conditions) {
    if (condition.curve) {
      ++result.with_curve;
      if (!first) first = condition.curve;
      else curves = curves && same_curve(*first, *condition.curve);
    }
    if (!condition.state_digest.empty()) {
      ++result.with_digest;
      if (result.digest.empty()) result.digest = condition.state_digest;
      else digests = digests && result.digest == condition.state_digest;
    }
  }
  result.curves = curves && result.with_curve >= 2;
  result.digests = digests && result.with_digest >= 2;
  if (!digests) result.digest.clear();
  return result;
}

}  // namespace zs::plot
