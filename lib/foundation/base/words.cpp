// SPDX-License-Identifier: Apache-2.0
#include "base/words.hpp"

#include <algorithm>

namespace zs {

std::string some_of(const std::vector<std::string>& words, std::size_t most, std::string_view between,
                    std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, words.size()); ++i) (text += i ? between : "") += words[i];
  if (words.size() > most) (text += last) += std::to_string(words.size() - most) + " more";
  return text;
}

std::vector<std::string> split(std::string_view text, std::string_view at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + at.size()) {
    end = text.find(at, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
  }
  return parts;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
  return result;
}

std::string counted(std::size_t count, std::string_view noun) {
  return (std::to_string(count) + " ").append(noun) + (count == 1 ? "" : "s");
}

}  // namespace zs
