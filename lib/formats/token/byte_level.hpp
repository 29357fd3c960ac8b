// SPDX-License-Identifier: Apache-2.0
// The tokenizer of GPT-2 and Llama 3: splits text into words and merges their bytes.
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

/// The content of a tokenizer.json.
struct ByteLevelParts {
  std::unordered_map<std::string, Id> vocabulary{};  ///< as in the file
  Bpe bpe{};
  Steps steps{};
  bool composes = false;                 ///< the text between added tokens is put into Unicode's form C first
  std::vector<AddedToken> added{};       ///< matched in the original text
  std::vector<AddedToken> normalized{};  ///< matched in the remaining text after normalization
  std::string end{};                     ///< the end-of-text token, "" if there is none
};

std::unique_ptr<Tokenizer> byte_level(ByteLevelParts parts);

/// The bytes of a token of the vocabulary, or nothing if a character of it represents no byte.
std::optional<std::string> bytes_of(std::string_view token);
/// The character that represents a byte.
std::string letter_of(unsigned char byte);

}  // namespace zs::token
