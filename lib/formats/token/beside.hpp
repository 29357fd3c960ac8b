// SPDX-License-Identifier: Apache-2.0
// The added tokens of a tokenizer's folder and those with names, as transformers has them.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "token/added.hpp"

namespace zs::token {

/// Settings for texts with special tokens, from the files next to a tokenizer.model.
struct Beside {
  std::vector<AddedToken> tokens{};      ///< found first
  std::vector<AddedToken> normalized{};  ///< found between those
  std::optional<bool> prefix{};          ///< text gets a blank before it; nothing: as the model says
  bool every = false;                    ///< legacy: so does text behind an added token
  std::string adding{};                  ///< added_tokens.json, if it is there
};

/// Reads added_tokens_decoder and the special tokens by name from tokenizer_config.json, or else from
/// special_tokens_map.json and added_tokens.json. `size` is the number of the model's pieces, and `find` gives a
/// piece's id: a token that is not a piece gets the next free one. Throws Error with file and key, also for a token
/// with two different ids.
Beside read_beside(const std::string& folder, Id size,
                   const std::function<std::optional<Id>(const std::string&)>& find);

/// The names of the files that read_beside() reads.
extern const std::vector<std::string> kBesideFiles;

/// The contents of the tokens that have names: bos_token, eos_token and so on, and a tokenizer's own ones, such as
/// image_token. From tokenizer_config.json, and, if that has no added_tokens_decoder, from special_tokens_map.json,
/// which counts more. Throws Error with file and key.
std::map<std::string, std::string> named_tokens(const std::string& folder);

}  // namespace zs::token
