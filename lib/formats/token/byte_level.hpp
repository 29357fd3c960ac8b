// SPDX-License-Identifier: Apache-2.0
// The tokenizer of GPT-2 and Llama 3: text is cut into words, and a word's bytes are merged.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "token/added.hpp"
#include "token/bpe.hpp"
#include "token/split.hpp"
#include "token/tokenizer.hpp"

namespace zs::token {

/// What a tokenizer.json holds.
struct ByteLevelParts {
  std::unordered_map<std::string, Id> vocabulary{};  ///< as the file writes it
  Bpe bpe{};
  Steps steps{};
  std::vector<AddedToken> added{};       ///< found in the text as it is
  std::vector<AddedToken> normalized{};  ///< found in what is left, once it is normalized (which is: left as it is)
  std::string end{};                     ///< the content of the end-of-text token, "" if it has none
};

std::unique_ptr<Tokenizer> byte_level(ByteLevelParts parts);

/// The bytes that a token of the vocabulary stands for, or nothing where it has characters that stand for no byte.
std::optional<std::string> bytes_of(std::string_view token);
/// The character that stands for a byte.
std::string letter_of(unsigned char byte);

}  // namespace zs::token
