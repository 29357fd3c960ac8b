// SPDX-License-Identifier: Apache-2.0
// Fixed lists of words, each written as one text with blanks between: "lr learning_rate".
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

namespace zs {

/// The words, in order; views into `list`.
inline std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; !list.empty(); list.remove_prefix(std::min(end + 1, list.size()))) {
    end = std::min(list.find(' '), list.size());
    if (end > 0) words.push_back(list.substr(0, end));
  }
  return words;
}

inline bool has_word(std::string_view list, std::string_view word) {
  return std::ranges::count(words_of(list), word) > 0;
}

}  // namespace zs
