// SPDX-License-Identifier: Apache-2.0
// Added tokens, which are found in the text before the vocabulary is used: "<|endoftext|>".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "token/bpe.hpp"

namespace zs::token {

/// Field names as in tokenizer.json.
struct AddedToken {
  Id id = 0;
  std::string content{};
  bool single_word = false;  ///< matches only without a letter, digit or underscore next to it
  bool lstrip = false;       ///< includes the white space before it
  bool rstrip = false;       ///< includes the white space after it
};

/// A part of a text: one added token, or text without any.
struct Stretch {
  std::string_view text;
  std::optional<Id> token;
};

/// Finds all added tokens in one pass: the leftmost match, and of those the longest.
class AddedTokens {
 public:
  /// REQUIRES: no content is empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);
  /// Splits the text. REQUIRES: text is UTF-8.
  void find(std::string_view text, std::vector<Stretch>& stretches) const;

 private:
  std::vector<AddedToken> tokens_;
  // A trie: the next node by node and byte, and the token that ends at a node.
  std::unordered_map<std::uint64_t, std::uint32_t> next_;
  std::vector<std::optional<std::size_t>> ends_{1};
  std::vector<bool> begins_ = std::vector<bool>(256);

  const AddedToken* longest(std::string_view text) const;
};

}  // namespace zs::token
