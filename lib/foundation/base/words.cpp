// SPDX-License-Identifier: Apache-2.0
#include "base/words.hpp"

#include <algorithm>
#include "base/error.hpp"

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

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines = split(text, "\n");
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; !list.empty(); list.remove_prefix(std::min(end + 1, list.size()))) {
    end = std::min(list.find(' '), list.size());
    if (end > 0) words.push_back(list.substr(0, end));
  }
  return words;
}

bool has_word(std::string_view list, std::string_view word) { return std::ranges::count(words_of(list), word) > 0; }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
  return result;
}

std::string counted(std::size_t count, std::string_view noun) {
  return (std::to_string(count) + " ").append(noun) + (count == 1 ? "" : "s");
}

std::string shell_quoted(const std::vector<std::string>& words) {
  static const std::string kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words;
  bool within = false;  // a word, which may be empty: ''
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (!quote && (c == ' ' || c == '\t' || c == '\n')) {
      within = false;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    const char next = at + 1 < line.size() ? line[at + 1] : 0;
    // Within "", a backslash is one of the word unless what follows means something there.
    const bool escapes = c == '\\' && next &&
                         (!quote || (quote == '"' && std::string_view("\"\\$`").find(next) != std::string_view::npos));
    if (escapes)
      words.back() += line[++at];
    else if (quote ? c == quote : c == '\'' || c == '"')
      quote = quote ? 0 : c;
    else
      words.back() += c;
  }
  if (quote) throw Error("unmatched quote in " + std::string(line));
  return words;
}

}  // namespace zs
