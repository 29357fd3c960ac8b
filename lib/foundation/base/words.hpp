// SPDX-License-Identifier: Apache-2.0
// Lists of words as one text, and back.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace zs {

/// "a, b, c": what `word` gives of each of a range, with `between` between them.
template <typename Range, typename Word = std::identity>
std::string joined(const Range& range, std::string_view between = ", ", Word word = {}) {
  std::string text;
  for (const auto& one : range) (text += text.empty() ? "" : between) += std::invoke(word, one);
  return text;
}

/// "a, b and c": the same of a vector, for a sentence.
template <typename T, typename Word = std::identity>
std::string with_and(const std::vector<T>& values, Word word = {}) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    (text += i == 0 ? "" : i + 1 == values.size() ? " and " : ", ") += std::invoke(word, values[i]);
  return text;
}

/// The first `most` of them, and how many more there are: "a, b and 3 more".
std::string some_of(const std::vector<std::string>& words, std::size_t most, std::string_view between = ", ",
                    std::string_view last = " and ");

/// "a,b" at "," as a and b. An empty text is one empty word.
std::vector<std::string> split(std::string_view text, std::string_view at);
/// The lines of a text, without their ends.
std::vector<std::string> lines_of(std::string_view text);

/// The words of a text with blanks between, "lr learning_rate", in order; views into `list`.
std::vector<std::string_view> words_of(std::string_view list);
bool has_word(std::string_view list, std::string_view word);

/// The letters A to Z as a to z.
std::string lower(std::string_view text);

/// "1 condition", "6 conditions".
std::string counted(std::size_t count, std::string_view noun);

/// `words` as one line that a shell splits into the same words.
std::string shell_quoted(const std::vector<std::string>& words);

/// The words of `line`, split as by a shell, with its quotes and backslashes; nothing is expanded. Throws Error at an
/// unmatched quote.
std::vector<std::string> shell_words(std::string_view line);

}  // namespace zs
