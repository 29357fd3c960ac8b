// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "state/diff.hpp"

namespace zs::state {

Names::Names(const std::string& path) {
  std::istringstream lines(Input(path).read_all());
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string a, b, more;
    if (!(words >> a) || a == "#") continue;
    const auto stars = [](const std::string& text) { return std::count(text.begin(), text.end(), '*'); };
    if (!(words >> b) || words >> more)
      throw Error(path, number, "expected two names: that in the first checkpoint, and that in the second");
    if (stars(a) != stars(b) || stars(a) > 1) throw Error(path, number, "expected one * in both names, or in none");
    rules_.emplace_back(a, b);
  }
  if (rules_.empty()) throw Error(path, 0, "holds no pair of names");
}

std::string Names::renamed(const std::string& name) const {
  for (const auto& [from, to] : rules_) {
    const std::size_t star = from.find('*');
    if (star == std::string::npos) {
      if (from == name) return to;
      continue;
    }
    const std::string_view head = std::string_view(from).substr(0, star),
                           tail = std::string_view(from).substr(star + 1);
    if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) continue;
    std::string made = to;
    return made.replace(to.find('*'), 1, name.substr(head.size(), name.size() - head.size() - tail.size()));
  }
  return name;
}

}  // namespace zs::state
