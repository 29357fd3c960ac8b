// SPDX-License-Identifier: Apache-2.0
#include "report/document.hpp"

#include <algorithm>

namespace zs::report {

std::string Origin::place() const {
  if (path.empty() || first_line == 0) return path;
  return path + ":" + std::to_string(first_line) + (last_line > first_line ? "-" + std::to_string(last_line) : "");
}

Text& Text::operator+=(const Text& other) {
  spans.insert(spans.end(), other.spans.begin(), other.spans.end());
  return *this;
}

std::string Text::plain() const {
  std::string words;
  for (const Span& span : spans) words += span.text;
  return words;
}

Text said(std::string_view pattern, const std::vector<Text>& pieces) {
  Text made;
  auto next = pieces.begin();
  for (std::size_t at = 0; at <= pattern.size();) {
    const std::size_t end = std::min(pattern.find("{}", at), pattern.size());
    if (end > at) made += std::string(pattern.substr(at, end - at));
    if (end < pattern.size()) made += next == pieces.end() ? Text("{}") : *next++;
    at = end + 2;
  }
  return made;
}

Text operator+(Text left, const Text& right) { return left += right; }

}  // namespace zs::report
