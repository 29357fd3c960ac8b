// SPDX-License-Identifier: Apache-2.0
#include "base/shell.hpp"

#include "base/error.hpp"

namespace zs {

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
