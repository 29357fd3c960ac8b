// SPDX-License-Identifier: Apache-2.0
#include "registry/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number.hpp"
#include "stat/sample.hpp"

namespace zs::registry {
namespace {

constexpr std::size_t kMost = 5;  // values of a column that are listed one by one

std::string count_text(std::size_t count) { return to_text(static_cast<std::int64_t>(count)); }

/// "gpt2 (3), tiny (1), 4 more".
std::string frequent(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), kMost); ++i)
    text += (i ? ", " : "") + order[i].first + " (" + count_text(order[i].second) + ")";
  return order.size() > kMost ? text + ", " + count_text(order.size() - kMost) + " more" : text;
}

}  // namespace

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
    cells[0] = sheet.header[column], cells[1] = count_text(runs), cells[2] = count_text(counts.size());
    if (numeric) {
      cells[2] = count_text(different.size());
      std::size_t at = 3;
      for (const double value :
           {stat::mean(finite), stat::deviation(finite), stat::quantile(finite, 0), stat::quantile(finite, 0.25),
            stat::median(finite), stat::quantile(finite, 0.75), stat::quantile(finite, 1)})
        cells[at++] = std::isnan(value) ? "" : to_text(value);
      if (finite.size() < runs) cells[at] = count_text(runs - finite.size());
    }
    if (!numeric || (counts.size() <= kMost && counts.size() < runs)) cells.back() = frequent(counts);
    made.rows.push_back(std::move(cells));
  }
  return made;
}

}  // namespace zs::registry
