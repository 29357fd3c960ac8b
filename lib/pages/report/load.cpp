// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ranges>
#include <vector>

#include "base/number.hpp"
#include "base/words.hpp"
#include "report/batch.hpp"

namespace zs::report {

Text load_sentence(const Findings& found) {
  constexpr double kMuch = 1;  // processes: less changes no time
  constexpr std::size_t kMost = 12;
  std::vector<std::pair<std::int64_t, double>> loads;
  bool once = true;
  for (const Condition& condition : found.conditions) {
    once = once && condition.members.size() == 1;
    for (const summary::Member& member : condition.members) {
      const auto load = parse_real(member.run->attribute("load_before"));
      if (load) loads.emplace_back(parse_int(member.run->attribute("order")).value_or(0), *load);
    }
  }
  std::ranges::stable_sort(loads, [](const auto& a, const auto& b) { return a.first < b.first; });
  if (loads.size() < 2 || loads.size() > kMost) return {};
  const auto [least, most] = std::ranges::minmax(loads | std::views::values);
  if (!(most - least > kMuch)) return {};
  const bool in_turn = loads.front().first < loads.back().first;
  return say("{}{} the load of the machine before them was {}: a part of the differences in time may be due to it.",
             once ? "Each ran once" : "They ran", in_turn ? ", one after another;" : ";",
             zs::joined(loads, ", ", [](const auto& one) { return to_rounded_text(one.second, 2); }));
}

}  // namespace zs::report
