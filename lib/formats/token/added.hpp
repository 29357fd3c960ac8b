// SPDX-License-Identifier: Apache-2.0
// Tokens that stand beside the vocabulary and are found in the text before anything else: "<|endoftext|>".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "token/bpe.hpp"

namespace zs::token {

/// As tokenizer.json has it, with its names.
struct AddedToken {
  Id id = 0;
  std::string content{};
  bool single_word = false;  ///< only where no letter, digit or underscore stands beside it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< and behind it
};

/// A stretch of a text: one added token, or text without any.
struct Stretch {
  std::string_view text;
  std::optional<Id> token;
};

/// A set of added tokens that is looked for in one go: of those that begin first, the longest.
class AddedTokens {
 public:
  /// REQUIRES: no content is empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);
  /// The text in stretches. REQUIRES: text is UTF-8.
  void find(std::string_view text, std::vector<Stretch>& stretches) const;

 private:
  std::vector<AddedToken> tokens_;
  // Which characters may come next: nodes of a tree, by node and byte; and which token ends at a node.
  std::unordered_map<std::uint64_t, std::uint32_t> next_;
  std::vector<std::optional<std::size_t>> ends_{1};
  std::vector<bool> begins_ = std::vector<bool>(256);

  const AddedToken* longest(std::string_view text) const;
};

/// Whether the character is one that \w matches in Rust's regular expressions.
bool is_word(char32_t character);

}  // namespace zs::token
