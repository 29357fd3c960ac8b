// SPDX-License-Identifier: Apache-2.0
#include "metric/difference.hpp"

#include <map>

namespace zs::metric {
namespace {

/// The text of the column by step: shortest round-trip, so texts are the same where bits are.
std::map<std::int64_t, std::string> by_step(const Table& table, std::string_view column) {
  std::map<std::int64_t, std::string> values;
  const Column* const steps = table.find("step");
  const Column* const found = table.find(column);
  if (!steps || !found || steps->type() != Type::integer) return values;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!steps->absent(row) && !found->absent(row)) values[steps->integers()[row]] = found->text(row);
  }
  return values;
}

}  // namespace

Difference difference(const Table& a, const Table& b, std::string_view column) {
  Difference result;
  const auto x = by_step(a, column), y = by_step(b, column);
  for (const auto& [step, value] : x) {
    const auto other = y.find(step);
    if (other == y.end()) continue;
    ++result.compared;
    if (result.step || value == other->second) continue;
    result.step = step;
    result.a = value;
    result.b = other->second;
  }
  return result;
}

}  // namespace zs::metric
