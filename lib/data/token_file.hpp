// SPDX-License-Identifier: Apache-2.0
// The tokens of a token file, or of text through a tokenizer.
#pragma once
#include <memory>
#include <string>

#include "data/tokens.hpp"

namespace zs::data {

/// Whether a path names a token file: *.bin.
bool names_token_file(const std::string& path);

/// A token file, mapped; every id is below `vocabulary`. Takes the first `percentage` of the tokens and of these the
/// first `most` (0: all). Throws zs::Error as token::TokenFile does, and where nothing is left.
std::shared_ptr<const Tokens> token_file(const std::string& path, std::int64_t vocabulary, double percentage,
                                         std::int64_t most);

/// The same of text, a file or a folder that is not divided, through the tokenizer at that path; what was tokenised is
/// kept in token::token_cache(). Throws zs::Error where the tokenizer has ids that are not below `vocabulary`.
std::shared_ptr<const Tokens> tokenized_text(const std::string& path, const std::string& tokenizer,
                                             std::int64_t vocabulary, double percentage, std::int64_t most);

}  // namespace zs::data
