// SPDX-License-Identifier: Apache-2.0
#include "token/added.hpp"

#include "token/expression.hpp"
#include "token/unicode.hpp"

namespace zs::token {
namespace {

std::uint64_t step(std::uint32_t node, char c) {
  return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(c);
}

/// The start of the last character of `text`. REQUIRES: text is not empty.
std::size_t last(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

std::size_t character_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
  return size;
}

bool is_word_at(std::string_view text) {
  // Letters, marks, digits, connectors, joiners, and what else is Alphabetic: numbers of letters, letters in circles.
  static const Expression expression(
      R"([\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}])",
      "an added token of a single word");
  thread_local Expression::Matcher matcher(expression);
  return !text.empty() && matcher.next(text.substr(0, character_size(text)), 0).begin == 0;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::uint32_t node = 0;
    for (const char c : tokens_[i].content) {
      const auto [at, fresh] = next_.try_emplace(step(node, c), static_cast<std::uint32_t>(ends_.size()));
      if (fresh) ends_.emplace_back();
      node = at->second;
    }
    ends_[node] = i;
    begins_[static_cast<unsigned char>(tokens_[i].content.front())] = true;
  }
}

const AddedToken* AddedTokens::longest(std::string_view text) const {
  const AddedToken* found = nullptr;
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto at = next_.find(step(node, c));
    if (at == next_.end()) break;
    node = at->second;
    if (ends_[node]) found = &tokens_[*ends_[node]];
  }
  return found;
}

void AddedTokens::find(std::string_view text, std::vector<Stretch>& stretches) const {
  std::size_t done = 0;  // the text before it is in stretches
  for (std::size_t at = 0; !tokens_.empty() && at < text.size();) {
    const AddedToken* const token = begins_[static_cast<unsigned char>(text[at])] ? longest(text.substr(at)) : nullptr;
    if (!token) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->single_word) {
      const std::string_view before = text.substr(0, begin);
      if ((!before.empty() && is_word_at(before.substr(last(before)))) || is_word_at(text.substr(end))) continue;
    }
    while (token->lstrip && begin > done) {
      const std::size_t previous = last(text.substr(0, begin));
      if (!is_white_space(front(text.substr(previous)))) break;
      begin = previous;
    }
    while (token->rstrip && end < text.size() && is_white_space(front(text.substr(end))))
      end += character_size(text.substr(end));
    if (begin < done) stretches.back().text.remove_suffix(done - begin);  // of a token that took it as white space
    if (done < begin) stretches.push_back({text.substr(done, begin - done), {}});
    stretches.push_back({text.substr(begin, end - begin), token->id});
    done = end;
  }
  if (done < text.size()) stretches.push_back({text.substr(done), {}});
}

}  // namespace zs::token
