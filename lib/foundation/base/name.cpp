// SPDX-License-Identifier: Apache-2.0
#include "base/name.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace zs {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, std::size_t count) {
  std::vector<std::pair<int, std::string>> ranked;
  const int furthest = static_cast<int>(name.size()) / 3 + 1;
  constexpr std::size_t kShortest = 3;  // two letters are part of too much
  for (const std::string& candidate : candidates) {
    const int longer = static_cast<int>(candidate.size()) - static_cast<int>(name.size());
    int distance = std::abs(longer) > furthest ? furthest + 1 : edit_distance(name, candidate);
    // A part of a name is nearer than a name with two other letters.
    const bool part = name.size() >= kShortest && candidate.find(name) != std::string::npos;
    if (part && distance > 2) distance = std::min(2, furthest);
    if (distance <= furthest) ranked.emplace_back(2 * distance - part, candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) names.push_back(ranked[i].second);
  return names;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto names = nearest(name, candidates);
  return names.empty() ? "" : ", did you mean '" + names.front() + "'?";
}

bool names_file(std::string_view name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= kLongestName && name.front() != '-' && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::string cannot_name(std::string_view name, std::string_view what) {
  if (name.size() <= kLongestName)
    return "'" + std::string(name) + "' cannot name a " + std::string(what) + ": use letters, digits, '_', '-', '.'";
  constexpr std::size_t kShown = 40;
  return "'" + std::string(name.substr(0, kShown)) + "...' cannot name a " + std::string(what) + ": it has " +
         std::to_string(name.size()) + " letters, and may have " + std::to_string(kLongestName);
}

}  // namespace zs
