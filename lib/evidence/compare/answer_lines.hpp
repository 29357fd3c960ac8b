// SPDX-License-Identifier: Apache-2.0
// The lines of a verdict: key and text, as zs-verify prints them.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zs::compare {

using AnswerLines = std::vector<std::pair<std::string, std::string>>;

/// The text of the first of these lines that there is; "" if there is none.
inline std::string line_of(const AnswerLines& lines, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto found = std::ranges::find(lines, key, [](const auto& line) { return std::string_view(line.first); });
    if (found != lines.end() && !found->second.empty()) return found->second;
  }
  return "";
}

}  // namespace zs::compare
