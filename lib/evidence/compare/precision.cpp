// SPDX-License-Identifier: Apache-2.0
#include "compare/precision.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/number.hpp"

namespace zs::compare {
namespace {

/// Digits after the point, and significant digits.
struct Digits {
  int decimals = 0, significant = 0;
};

Digits digits_of(const std::string& cell) {
  constexpr std::int64_t kMostExponent = 400;  // beyond it a double is 0 or infinite
  Digits digits;
  bool behind = false, begun = false;
  std::size_t i = 0;
  for (; i < cell.size() && cell[i] != 'e' && cell[i] != 'E'; ++i) {
    if (cell[i] == '.') behind = true;
    if (cell[i] < '0' || cell[i] > '9') continue;
    begun = begun || cell[i] != '0';
    digits.significant += begun;
    digits.decimals += behind;
  }
  if (i < cell.size()) {
    const std::size_t number = cell[i + 1] == '+' ? i + 2 : i + 1;
    const bool negative = i + 1 < cell.size() && cell[i + 1] == '-';
    const std::int64_t exponent = parse_int(cell.substr(number)).value_or(negative ? -kMostExponent : kMostExponent);
    digits.decimals -= static_cast<int>(std::clamp(exponent, -kMostExponent, kMostExponent));
  }
  return digits;
}

}  // namespace

double Precision::uncertainty() const { return every_bit ? 0 : 0.5 * std::pow(10.0, -decimals); }

std::string Precision::text() const {
  return every_bit ? "every bit" : std::to_string(decimals) + " decimals (" + to_text(uncertainty()) + ")";
}

Precision precision_of(const std::vector<std::string>& cells) {
  constexpr int kAll = 15;
  Digits most;
  for (const std::string& cell : cells) {
    const Digits digits = digits_of(cell);
    most.decimals = std::max(most.decimals, digits.decimals);
    most.significant = std::max(most.significant, digits.significant);
  }
  return {most.significant >= kAll, most.decimals};
}

Precision precision_of(const metric::Run& run, const metric::Column& column) {
  const std::string source = run.attribute("source");
  if (source.empty() || source.ends_with(".h5")) return {};
  std::vector<std::string> cells;
  for (std::size_t row = 0; row < column.size(); ++row) {
    if (!column.absent(row)) cells.push_back(column.text(row));
  }
  return precision_of(cells);
}

}  // namespace zs::compare
