// SPDX-License-Identifier: Apache-2.0
#include "report/document.hpp"

#include <utility>

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

Text operator+(Text left, const Text& right) { return left += right; }

}  // namespace zs::report
