// SPDX-License-Identifier: Apache-2.0
// Sentences of a report, with their emphasis and the origins of their numbers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs::report {

/// A piece of a sentence.
struct Span {
  enum class Look { plain, strong, code, bad };
  std::string text;
  Look look = Look::plain;
  int origin = -1;  ///< index into Document::origins, or -1
};

/// A sentence or a cell.
struct Text {
  std::vector<Span> spans;

  Text() = default;
  Text(const char* text) : spans{{text}} {}  // implicit: a sentence is often one plain piece
  Text(std::string text) : spans{{std::move(text)}} {}
  Text(Span span) : spans{std::move(span)} {}
  Text& operator+=(const Text& other);
  /// The words without formatting.
  std::string plain() const;
  bool empty() const { return spans.empty(); }
};
Text operator+(Text left, const Text& right);

/// `pattern` with each "{}" replaced by the next piece: say("{} ends with {}.", code(name), code(digest)).
Text said(std::string_view pattern, const std::vector<Text>& pieces);
template <typename... Pieces>
Text say(std::string_view pattern, const Pieces&... pieces) {
  return said(pattern, {Text(pieces)...});
}

inline Span strong(std::string text) { return {std::move(text), Span::Look::strong}; }
inline Span code(std::string text) { return {std::move(text), Span::Look::code}; }
inline Span bad(std::string text) { return {std::move(text), Span::Look::bad}; }

}  // namespace zs::report
